"""The routes of the tenants' port beside the hot path: the list of models, and a clear answer to everything else."""

from __future__ import annotations

import random
import time
from typing import Any

from fastapi import FastAPI, Request
from fastapi.responses import Response
from fastapi.telemetry import TelemetryConfig
from starlette.exceptions import HTTPException

from fairpool_gateway.app import headers
from fairpool_gateway.app.dialect import dialect_of
from fairpool_gateway.app.gateway import Gateway
from fairpool_gateway.errors import InternalError, ModelNotFound, NotFound, Refused

INTERNAL_ERROR = "This gateway failed. Report it to those who run it, with the x-request-id of this answer."

NO_TELEMETRY: TelemetryConfig = {"tracing": False, "metrics": False, "logs": False, "auto_configure": False}
"""FastAPI's own would send URLs and exceptions, with whatever is in them, to wherever `OTEL_*` says."""


def tenant_routes(gateway: Gateway) -> FastAPI:
    """The FastAPI application that the proxy hands on to."""
    app = FastAPI(title="FairPool gateway", openapi_url=None, redirect_slashes=False, telemetry=NO_TELEMETRY)
    created = int(time.time())

    @app.get("/v1/models")
    async def models(request: Request, response: Response) -> dict[str, Any]:
        gateway.answered(gateway.identify(request.scope["headers"]))
        response.headers["x-request-id"] = _request_id(request)
        return {"object": "list", "data": [_model(name, created) for name in gateway.models]}

    @app.get("/v1/models/{name:path}")
    async def model(request: Request, response: Response, name: str) -> dict[str, Any]:
        tenant = gateway.identify(request.scope["headers"])
        if name not in gateway.models:
            raise ModelNotFound.of(name, tenant)
        gateway.answered(tenant)
        response.headers["x-request-id"] = _request_id(request)
        return _model(name, created)

    @app.exception_handler(Refused)
    async def refused(request: Request, refusal: Exception) -> Response:
        assert isinstance(refusal, Refused)
        return _answer(request, refusal)

    @app.exception_handler(HTTPException)
    async def not_found(request: Request, _: Exception) -> Response:
        return _answer(
            request,
            NotFound(
                f"There is no {request.method} {request.url.path[:100]} here. This gateway serves GET /v1/models "
                f"and, with POST, {', '.join(gateway.apis)}."
            ),
        )

    @app.exception_handler(Exception)
    async def failed(request: Request, _: Exception) -> Response:
        return _answer(request, InternalError(INTERNAL_ERROR))

    def _answer(request: Request, refusal: Refused) -> Response:
        request_id = _request_id(request)
        gateway.refused(refusal, None, request_id.encode())
        dialect = dialect_of(request.scope["path"])
        answer = Response(dialect.refusal(refusal), refusal.status, media_type="application/json")
        own = refusal.headers(spread=random.random())  # noqa: S311 - guards nothing
        answer.raw_headers.extend(header for header in own if header[0] != b"content-type")
        answer.raw_headers.extend((name, request_id.encode()) for name in dialect.id_headers)
        return answer

    def _request_id(request: Request) -> str:
        return headers.request_id(request.scope["headers"], gateway.new_request_id()).decode()

    return app


def _model(name: str, created: int) -> dict[str, Any]:
    return {"id": name, "object": "model", "created": created, "owned_by": "fairpool"}
