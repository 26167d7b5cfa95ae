"""The admin port: health, metrics and the scheduler's state, on a port that tenants cannot reach.

`/readyz` fails before the gateway knows its configuration and its endpoints, and while it drains. Afterwards what it
cannot follow any more leaves it ready, for it goes on with what it has seen last; the detail says so.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence

from fastapi import FastAPI
from fastapi.responses import Response

from fairpool_gateway.app.gateway import Gateway
from fairpool_gateway.app.kubernetes import Kubernetes
from fairpool_gateway.app.listener import Listener
from fairpool_gateway.app.report import left_out
from fairpool_gateway.app.routes import NO_TELEMETRY
from fairpool_gateway.app.shutdown import Phase
from fairpool_gateway.debug import Clock, keys_view, pool_view, requests_view, tenants_view
from fairpool_gateway.discovery.left_out import pods_by_reason
from fairpool_gateway.metrics import Vitals, exposition
from fairpool_gateway.views import Alive, KeysView, PoolView, Readiness, RequestsView, TenantsView


def waiting_routes(why: Callable[[], str]) -> FastAPI:
    """The admin port of a gateway that has no configuration yet; `why` says what it waits for."""
    app = FastAPI(title="FairPool gateway, waiting", telemetry=NO_TELEMETRY)

    @app.get("/healthz", summary="Whether the process answers at all")
    async def healthz() -> Alive:
        return Alive()

    @app.get("/readyz", summary="What it waits for", status_code=503, response_model_exclude_none=True)
    async def readyz() -> Readiness:
        return Readiness(status="waiting", config=why())

    return app


def admin_routes(gateway: Gateway, listeners: Sequence[Listener] = (), kubernetes: Kubernetes | None = None) -> FastAPI:
    """The FastAPI application of the admin port. `listeners`: those of the tenants' port, once there are any."""
    app = FastAPI(title="FairPool gateway, admin", telemetry=NO_TELEMETRY)

    def followed() -> Mapping[str, str | None]:
        return {} if kubernetes is None else kubernetes.problems()

    dispatcher, loop = gateway.broker.dispatcher, asyncio.get_running_loop()
    scrape = exposition(
        dispatcher,
        lambda: Vitals(
            config_is_current=gateway.config_problem is None,
            buffered=gateway.client.buffered,
            connections=sum(each.connections for each in listeners),
            refused_connections=sum(each.refused for each in listeners),
            tasks=len(asyncio.all_tasks(loop)),
            left_out=pods_by_reason(gateway.found.left_out) if gateway.found else {},
            followed={name: problem is None for name, problem in followed().items()},
        ),
    )

    @app.get("/healthz", summary="Whether the process answers at all")
    async def healthz() -> Alive:
        return Alive()

    @app.get(
        "/readyz",
        summary="Whether tenants should be sent here",
        response_model_exclude_none=True,
        responses={503: {"description": "No", "model": Readiness}},
    )
    async def readyz(response: Response) -> Readiness:
        phase, knows = gateway.shutdown.phase, gateway.knows_its_endpoints
        if not knows or phase is Phase.DRAINING:
            response.status_code = 503
        return Readiness(
            status=phase.name.lower() if knows else "waiting",
            endpoints=len(dispatcher.endpoints),
            left_out=left_out(gateway) or None,
            **_problems(gateway),
            **_not_followed(followed()),
        )

    @app.get(
        "/metrics",
        summary="Metrics in Prometheus' text format",
        response_class=Response,
        responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}},
    )
    async def metrics() -> Response:
        parts = []
        for part in scrape():
            parts.append(part)
            await asyncio.sleep(0)  # Requests go on between the parts.
        return Response(b"".join(parts), media_type="text/plain; version=0.0.4; charset=utf-8")

    _add_debug(app, gateway)
    return app


def _add_debug(app: FastAPI, gateway: Gateway) -> None:
    """What the scheduler sees at this moment."""
    dispatcher, loop = gateway.broker.dispatcher, asyncio.get_running_loop()

    @app.get("/debug/pool", summary="Virtual time, meters, queues and slots")
    async def debug_pool() -> PoolView:
        return pool_view(dispatcher, loop.time())

    @app.get("/debug/tenants", summary="What each tenant asked for and got")
    async def debug_tenants() -> TenantsView:
        return tenants_view(dispatcher)

    @app.get("/debug/requests", summary="The last dispatches and refusals, by tenant or by x-request-id")
    async def debug_requests(tenant: str | None = None, request: str | None = None) -> RequestsView:
        return requests_view(dispatcher, Clock(loop.time(), time.time()), tenant=tenant, request=request)

    @app.get("/debug/keys", summary="When each key ends and was last used")
    async def debug_keys() -> KeysView:
        return keys_view(gateway.directory)


def _problems(gateway: Gateway) -> dict[str, str]:
    """What was renewed and cannot be used, and what is in force instead."""
    found = {
        "config": (gateway.config_problem, "the last good configuration stays in force"),
        "credential": (gateway.credential_problem, "the last one is still sent to endpoints"),
        "certificate": (gateway.certificate and gateway.certificate.problem, "the last good one stays in force"),
    }
    return {name: f"{instead}: {problem}" for name, (problem, instead) in found.items() if problem}


def _not_followed(followed: Mapping[str, str | None]) -> dict[str, str]:
    return {
        f"{name}_followed": f"what was seen last stays in force: {problem}"
        for name, problem in followed.items()
        if problem is not None
    }
