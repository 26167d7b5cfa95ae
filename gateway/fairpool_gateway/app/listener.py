"""Accepting connections: no more than there are descriptors for, counted from the first moment.

An event loop's own server counts nothing, tells nobody of connections that are still in their TLS handshake, and when
the descriptors have run out it stops listening or spins. What always holds here: connections and handshakes together
are no more than `most`; beyond it a new one is closed at once, and those that exist are served; a handshake that is
not over in time ends; and where descriptors run out all the same, accepting pauses and goes on.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import resource
import socket
import ssl
from collections.abc import Callable, Collection
from functools import partial
from typing import Final

from fairpool_gateway.app.protocol import HEAD_SECONDS

log = logging.getLogger(__name__)

MOST_CONNECTIONS: Final = 1 << 16
"""Whatever the system allows: an idle connection costs some 10 KiB."""

PAUSE_SECONDS: Final = 1.0
"""Before accepting is tried again where no descriptor was left."""

_SPARE_DESCRIPTORS: Final = 512
"""For the admin port, files and watches."""

_AT_ONCE: Final = 64
"""Connections that are accepted before others on the loop have their turn."""


def raise_descriptor_limit() -> int:
    """Allow as many descriptors as the system does; returns how many connections of tenants these are good for.

    A quarter is left for connections to endpoints: most requests wait, and those in flight are bounded by slots.
    """
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    spare = min(_SPARE_DESCRIPTORS, hard // 4)
    return min(MOST_CONNECTIONS, (hard - spare) * 3 // 4)


class Listener:
    """Accepts what comes on one socket, until it is closed. In uvicorn's eyes a server.

    Args:
        listening: the socket.
        protocol: makes the protocol of each connection.
        connections: those that exist, handshakes over; kept by whoever has them.
        most: how many there may be.
        tls: for connections over TLS.
    """

    def __init__(
        self,
        listening: socket.socket,
        protocol: Callable[[], asyncio.Protocol],
        connections: Collection[object],
        *,
        most: int = MOST_CONNECTIONS,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.refused = 0
        self._loop = asyncio.get_running_loop()
        self._socket = listening
        self._protocol = protocol
        self._connections = connections
        self._most = most
        self._tls = tls
        self._beginning: set[asyncio.Task[None]] = set()
        self._pause: asyncio.TimerHandle | None = None
        self._closed = False
        listening.setblocking(False)
        self._go_on()

    @property
    def connections(self) -> int:
        """How many there are, handshakes included."""
        return len(self._connections) + len(self._beginning)

    def close(self) -> None:
        """Accept no more, and give up handshakes; connections stay."""
        if self._closed:
            return
        self._closed = True
        if self._pause is None:
            self._loop.remove_reader(self._socket.fileno())
        else:
            self._pause.cancel()
        self._socket.close()
        if self._tls is not None:
            for task in self._beginning:
                task.cancel()

    async def wait_closed(self) -> None:
        """Wait for what `close` gave up."""
        await asyncio.gather(*self._beginning, return_exceptions=True)

    def _go_on(self) -> None:
        self._pause = None
        self._loop.add_reader(self._socket.fileno(), self._accept)

    def _accept(self) -> None:
        for _ in range(_AT_ONCE):
            try:
                connection, _ = self._socket.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                log.warning("no connection can be accepted: %s; trying again in %g s", error.strerror, PAUSE_SECONDS)
                self._loop.remove_reader(self._socket.fileno())
                self._pause = self._loop.call_later(PAUSE_SECONDS, self._go_on)
                return
            if self.connections >= self._most:
                connection.close()
                self.refused += 1
                log.warning("a connection was refused: there are %d already, and no more may be", self._most)
                continue
            connection.setblocking(False)
            task = self._loop.create_task(self._begin(connection))
            self._beginning.add(task)
            task.add_done_callback(partial(self._begun, connection))

    async def _begin(self, connection: socket.socket) -> None:
        """Have the loop serve a connection, after its handshake. One that fails in it is nobody's business."""
        within = None if self._tls is None else HEAD_SECONDS
        with contextlib.suppress(OSError):
            await self._loop.connect_accepted_socket(
                self._protocol, connection, ssl=self._tls, ssl_handshake_timeout=within
            )

    def _begun(self, connection: socket.socket, task: asyncio.Task[None]) -> None:
        self._beginning.discard(task)
        if task.cancelled():
            connection.close()  # Where the loop had taken it over, this does nothing.
