"""How both ports are served: by uvicorn with httptools, over our own listeners.

The tenants' port trusts no forwarded header and writes no access
log (which costs a fifth of the throughput).
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import socket
from collections.abc import Iterator
from typing import Any, cast

import uvicorn

from fairpool_gateway.app.certificate import Certificate
from fairpool_gateway.app.connection import TenantConnection
from fairpool_gateway.app.gateway import Gateway
from fairpool_gateway.app.listener import MOST_CONNECTIONS, Listener
from fairpool_gateway.app.protocol import Note
from fairpool_gateway.app.proxy import AsgiApp, Proxy
from fairpool_gateway.app.routes import tenant_routes
from fairpool_gateway.errors import CannotStart
from fairpool_gateway.writes import Writes

log = logging.getLogger(__name__)

UNREAD_SECONDS = 30.0
"""How long a tenant may take nothing of an answer that is there for it."""

LAST_WORDS_SECONDS = 5
"""For telling tenants that the time to drain is over."""

_KEEP_ALIVE_SECONDS = 75
"""Longer than load balancers and client pools keep idle connections, so that they close first."""

_BACKLOG = 4096
_UNSENT_BYTES = 128 << 10
MOST_ADMIN_CONNECTIONS = 128


class HttpServer(uvicorn.Server):
    """A uvicorn server of our `Listener`s, that leaves signals to the process it runs in."""

    def __init__(self, config: uvicorn.Config, note: Note | None, most_connections: int, writes: Writes) -> None:
        super().__init__(config)
        self.listeners: list[Listener] = []
        self._note = note
        self._writes = writes
        self._most_connections = most_connections

    def take_leave(self) -> None:
        """Have the answers that are due now end their connections, so that tenants ask for the next one elsewhere."""
        for connection in self.server_state.connections:
            assert isinstance(connection, TenantConnection)
            connection.take_leave()

    async def drain(self, seconds: float) -> None:
        """Wait for the requests that are here now, and for their answers to be taken; then stop serving.

        Until then it listens, for whoever comes meanwhile is to be told so. Requests that take longer are cancelled.
        """
        loop = asyncio.get_running_loop()
        over = loop.time() + seconds
        if here := set(self.server_state.tasks):
            _, late = await asyncio.wait(here, timeout=seconds)
            if late:
                log.warning("ending %d requests that take longer than there is time to drain", len(late))
                for task in late:
                    task.cancel()
                await asyncio.wait(late, timeout=LAST_WORDS_SECONDS)
        self.config.timeout_graceful_shutdown = max(LAST_WORDS_SECONDS, math.ceil(over - loop.time()))
        self.should_exit = True

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen on these sockets."""
        loop, config = asyncio.get_running_loop(), self.config

        def connection() -> asyncio.Protocol:
            protocol: type[Any] = config.http_protocol_class
            made: asyncio.Protocol = protocol(
                config, self.server_state, app_state={}, _loop=loop, note=self._note, writes=self._writes
            )
            return made

        self.listeners += [
            Listener(each, connection, self.server_state.connections, most=self._most_connections, tls=config.ssl)
            for each in sockets or ()
        ]
        self.servers = cast("list[asyncio.Server]", self.listeners)
        self.started = True

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Capture none."""
        yield


def tenant_server(gateway: Gateway, most_connections: int = MOST_CONNECTIONS) -> HttpServer:
    """The server of the tenants' port."""
    return http_server(
        Proxy(gateway, tenant_routes(gateway)),
        certificate=gateway.certificate,
        note=gateway.turned_away,
        writes=gateway.writes,
        most_connections=most_connections,
    )


def http_server(
    app: AsgiApp,
    *,
    certificate: Certificate | None = None,
    note: Note | None = None,
    writes: Writes | None = None,
    most_connections: int = MOST_CONNECTIONS,
) -> HttpServer:
    """A server for one port, as both ports are served; `note` is told what is refused before it is a request.

    `writes`: of the event loop that it works on, where others write too.
    """
    context = None if certificate is None else certificate.context
    return HttpServer(
        uvicorn.Config(
            app,
            http=TenantConnection,
            lifespan="off",
            log_config=None,
            access_log=False,
            proxy_headers=False,
            server_header=False,
            date_header=False,
            timeout_keep_alive=_KEEP_ALIVE_SECONDS,
            timeout_graceful_shutdown=LAST_WORDS_SECONDS,
            ssl_context_factory=None if context is None else lambda _config, _default: context,
        ),
        note,
        most_connections,
        writes or Writes(),
    )


def listen(host: str, port: int) -> socket.socket:
    """A listening socket, on a port that the kernel chooses if it is 0.

    `::` is every address of the machine, those of IPv4 too, and those alone where it has no IPv6.

    Raises:
        CannotStart: the address cannot be had.
    """
    dual = host == "::" and socket.has_dualstack_ipv6()
    if host == "::" and not dual:
        host = "0.0.0.0"
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listening = socket.create_server((host, port), family=family, backlog=_BACKLOG, dualstack_ipv6=dual)
    except OSError as error:
        raise CannotStart(f"cannot listen on {host} port {port}: {error.strerror}") from error
    # Whoever takes nothing of an answer for so long is cut by the kernel, and so seen to have left.
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(UNREAD_SECONDS * 1000))
    # And the kernel holds little of an answer beyond what is on its way to the tenant.
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, _UNSENT_BYTES)
    return listening


def address_of(listening: socket.socket) -> str:
    """Where a socket listens, as URLs have it."""
    host, port = listening.getsockname()[:2]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
