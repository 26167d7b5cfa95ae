"""A gateway inside the test's own event loop, served by the real server on ports that the kernel chose."""

import contextlib
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import httpx
import uvicorn
from support.scripted_endpoint import until

from fairpool_gateway.app.admin import admin_routes
from fairpool_gateway.app.gateway import Gateway
from fairpool_gateway.app.listener import MOST_CONNECTIONS
from fairpool_gateway.app.server import http_server, listen, tenant_server
from fairpool_gateway.config import PoolConfig
from fairpool_gateway.dispatcher import Dispatcher


@dataclass(frozen=True)
class RunningGateway:
    """The gateway and where it listens."""

    gateway: Gateway
    port: int
    admin_port: int
    scheme: str = "http"

    @property
    def url(self) -> str:
        """Where tenants connect, without a path."""
        return f"{self.scheme}://127.0.0.1:{self.port}"

    @property
    def admin_url(self) -> str:
        """Where the admin port is."""
        return f"http://127.0.0.1:{self.admin_port}"

    @property
    def dispatcher(self) -> Dispatcher:
        """The dispatcher, to look at."""
        return self.gateway.broker.dispatcher

    @property
    def in_flight(self) -> int:
        """Slots taken on all endpoints."""
        return sum(endpoint.in_flight for endpoint in self.dispatcher.endpoints)

    @property
    def outcomes(self) -> Counter[str]:
        """How requests ended, by reason."""
        return sum((tally.outcomes for tally in self.dispatcher.tallies), Counter())

    async def admin(self, path: str) -> httpx.Response:
        """GET a path of the admin port."""
        async with httpx.AsyncClient() as client:
            return await client.get(self.admin_url + path)


@contextlib.asynccontextmanager
async def running_gateway(
    config: PoolConfig, *, most_connections: int = MOST_CONNECTIONS, **options: Any
) -> AsyncIterator[RunningGateway]:
    """Serve a pool until the block ends; `options` go to `Gateway`."""
    gateway = Gateway(config, **options)
    tenants = tenant_server(gateway, most_connections)
    servers = (tenants, http_server(admin_routes(gateway, tenants.listeners)))
    try:
        ports = [await start(server) for server in servers]
        yield RunningGateway(gateway, *ports, "http" if gateway.certificate is None else "https")
    finally:
        for server in servers:
            await stop(server)
        await gateway.aclose()


async def start(server: uvicorn.Server) -> int:
    """Serve without the server's main loop, whose ticks would make each test's end wait; returns the port."""
    server.config.load()
    server.lifespan = server.config.lifespan_class(server.config)
    socket = listen("127.0.0.1", 0)
    await server.startup(sockets=[socket])
    return socket.getsockname()[1]


async def stop(server: uvicorn.Server) -> None:
    """Take nothing new and wait for what runs, without the tenths of a second that the server would sleep."""
    state = server.server_state
    for listener in server.servers:
        listener.close()
    for connection in list(state.connections):
        connection.shutdown()
    await until(lambda: not state.connections and not state.tasks)
