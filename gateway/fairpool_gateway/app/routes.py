"""The routes of the tenants' port beside the hot path: the list of models, and a clear answer to everything else."""

from __future__ import annotations

import random
import time
from typing import Any

from fastapi import FastAPI, Request
from fastapi.responses import Response
from starlette.exceptions import HTTPException

from fairpool_gateway.app import headers
from fairpool_gateway.app.gateway import Gateway
from fairpool_gateway.errors import NotFound, Refused


def tenant_routes(gateway: Gateway) -> FastAPI:
    """The FastAPI application that the proxy hands on to."""
    app = FastAPI(title="FairPool gateway", openapi_url=None, redirect_slashes=False)
    created = int(time.time())

    @app.get("/v1/models")
    async def models(request: Request, response: Response) -> dict[str, Any]:
        gateway.identify(request.scope["headers"])
        response.headers["x-request-id"] = _request_id(request)
        return {
            "object": "list",
            "data": [
                {"id": model, "object": "model", "created": created, "owned_by": "fairpool"}
                for model in gateway.config.models
            ],
        }

    @app.exception_handler(Refused)
    async def refused(request: Request, refusal: Exception) -> Response:
        assert isinstance(refusal, Refused)
        return _answer(request, refusal)

    @app.exception_handler(HTTPException)
    async def not_found(request: Request, _: Exception) -> Response:
        return _answer(
            request,
            NotFound(
                f"There is no {request.method} {request.url.path[:100]} here. This gateway serves GET /v1/models and, "
                "with POST, /v1/chat/completions, /v1/completions, /v1/embeddings and /v1/responses."
            ),
        )

    def _answer(request: Request, refusal: Refused) -> Response:
        gateway.count_refusal(refusal)
        answer = Response(refusal.body(), refusal.status, media_type="application/json")
        own = refusal.headers(spread=random.random())  # noqa: S311 - guards nothing
        answer.raw_headers.extend(header for header in own if header[0] != b"content-type")
        answer.headers["x-request-id"] = _request_id(request)
        return answer

    def _request_id(request: Request) -> str:
        return headers.request_id(request.scope["headers"], gateway.new_request_id()).decode()

    return app
