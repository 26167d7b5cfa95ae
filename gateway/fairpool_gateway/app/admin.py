"""The admin port: health, metrics and the scheduler's state, on a port that tenants cannot reach."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import Any

from fastapi import FastAPI
from fastapi.responses import JSONResponse, Response

from fairpool_gateway.app.gateway import Gateway
from fairpool_gateway.app.listener import Listener
from fairpool_gateway.app.routes import NO_TELEMETRY
from fairpool_gateway.app.shutdown import Phase
from fairpool_gateway.debug import Clock, keys_view, pool_view, requests_view, tenants_view
from fairpool_gateway.metrics import Vitals, exposition


def admin_routes(gateway: Gateway, listeners: Sequence[Listener] = ()) -> FastAPI:
    """The FastAPI application of the admin port. `listeners`: those of the tenants' port, once there are any."""
    app = FastAPI(title="FairPool gateway, admin", telemetry=NO_TELEMETRY)
    dispatcher, loop = gateway.broker.dispatcher, asyncio.get_running_loop()
    scrape = exposition(
        dispatcher,
        lambda: Vitals(
            config_is_current=gateway.config_problem is None,
            buffered=gateway.client.buffered,
            connections=sum(each.connections for each in listeners),
            refused_connections=sum(each.refused for each in listeners),
            tasks=len(asyncio.all_tasks(loop)),
        ),
    )

    @app.get("/healthz", summary="Whether the process answers at all")
    async def healthz() -> dict[str, str]:
        return {"status": "ok"}

    @app.get("/readyz", summary="Whether tenants should be sent here", responses={503: {"description": "Draining"}})
    async def readyz() -> JSONResponse:
        detail: dict[str, Any] = {
            "status": gateway.shutdown.phase.name.lower(),
            "endpoints": len(dispatcher.endpoints),
            **_problems(gateway),
        }
        return JSONResponse(detail, status_code=503 if gateway.shutdown.phase is Phase.DRAINING else 200)

    @app.get("/metrics", summary="Metrics in Prometheus' text format", response_class=Response)
    async def metrics() -> Response:
        parts = []
        for part in scrape():
            parts.append(part)
            await asyncio.sleep(0)  # Requests go on between the parts.
        return Response(b"".join(parts), media_type="text/plain; version=0.0.4; charset=utf-8")

    @app.get("/debug/pool", summary="Virtual time, meters, queues and slots")
    async def debug_pool() -> dict[str, Any]:
        return pool_view(dispatcher, loop.time())

    @app.get("/debug/tenants", summary="What each tenant asked for and got")
    async def debug_tenants() -> dict[str, Any]:
        return tenants_view(dispatcher)

    @app.get("/debug/requests", summary="The last dispatches and refusals, by tenant or by x-request-id")
    async def debug_requests(tenant: str | None = None, request: str | None = None) -> dict[str, Any]:
        return requests_view(dispatcher, Clock(loop.time(), time.time()), tenant=tenant, request=request)

    @app.get("/debug/keys", summary="When each key ends and was last used")
    async def debug_keys() -> dict[str, Any]:
        return keys_view(gateway.directory)

    return app


def _problems(gateway: Gateway) -> dict[str, str]:
    """What was renewed and cannot be used, and what is in force instead."""
    found = {
        "config": (gateway.config_problem, "the last good configuration stays in force"),
        "credential": (gateway.credential_problem, "the last one is still sent to endpoints"),
        "certificate": (gateway.certificate and gateway.certificate.problem, "the last good one stays in force"),
    }
    return {name: f"{instead}: {problem}" for name, (problem, instead) in found.items() if problem}
