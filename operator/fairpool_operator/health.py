"""The operator's port: whether it lives, whether it knows the cluster, and what it has counted."""

from __future__ import annotations

from collections.abc import Callable

from fastapi import FastAPI
from fastapi.responses import JSONResponse, Response
from fastapi.telemetry import TelemetryConfig

from fairpool_operator.metrics import Gauges, Tally, exposition

_NO_TELEMETRY: TelemetryConfig = {"tracing": False, "metrics": False, "logs": False, "auto_configure": False}


def health_routes(tally: Tally, gauges: Callable[[], Gauges]) -> FastAPI:
    """The FastAPI application of that port."""
    app = FastAPI(title="FairPool operator", telemetry=_NO_TELEMETRY)
    scrape = exposition(tally, gauges)

    @app.get("/healthz", summary="Whether the process answers at all")
    async def healthz() -> dict[str, str]:
        return {"status": "ok"}

    @app.get("/readyz", summary="Whether it knows the cluster", responses={503: {"description": "Nothing listed yet"}})
    async def readyz() -> JSONResponse:
        now = gauges()
        detail = {"status": "ready" if now.synced else "listing", "leading": now.leading, "waiting": now.waiting}
        return JSONResponse(detail, status_code=200 if now.synced else 503)

    @app.get("/metrics", summary="Metrics in Prometheus' text format", response_class=Response)
    async def metrics() -> Response:
        return Response(scrape(), media_type="text/plain; version=0.0.4; charset=utf-8")

    return app
