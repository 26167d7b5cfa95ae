"""The server's side of a tenant's connection: uvicorn's, with bounds on what comes before a request.

uvicorn with httptools takes headers of any size and waits for their end for ever. Here a head above `MAX_HEAD` is
answered with 431, a head that is not complete after `HEAD_SECONDS` ends its connection, and so does a connection that
sends nothing at all. Beyond `most_connections` a new one is closed at once, before the process runs out of descriptors.
"""

from __future__ import annotations

import asyncio
import re
import resource
from typing import Any, Final

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

MAX_HEAD: Final = 64 << 10
HEAD_SECONDS = 10.0

_SPARE_DESCRIPTORS = 512
"""For connections to endpoints, files and watches."""

_UPGRADE = re.compile(rb"\r\nupgrade:", re.IGNORECASE)

_TOO_LARGE = b"HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"


def raise_descriptor_limit() -> int:
    """Allow as many descriptors as the system does; returns how many connections of tenants these are good for."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return max(_SPARE_DESCRIPTORS, (hard - _SPARE_DESCRIPTORS) // 2)


class BoundedProtocol(HttpToolsProtocol):
    """One connection of a tenant."""

    most_connections = 1 << 20

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._in_head = True
        self._head_bytes = 0
        self._head_due: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        """A tenant connected: its first head is due."""
        super().connection_made(transport)
        if len(self.connections) > self.most_connections:
            transport.close()
            return
        self._expect_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection is closed."""
        self._expect_no_head()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Bytes from the tenant; those of a head are counted until it is complete."""
        if self._in_head:
            self._head_bytes += len(data)
            if b"pgrade:" in data:
                data = _without_upgrade(data)
        super().data_received(data)
        if self._head_bytes and not self.transport.is_closing():
            self._check_head()

    def on_headers_complete(self) -> None:
        """The head is complete; a body may follow, of which a refused tenant may send as much as it said."""
        self._in_head = False
        self._head_bytes = 0
        self._expect_no_head()
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """The request is complete; another may follow, even before this one is answered."""
        super().on_message_complete()
        self._in_head = True

    def _check_head(self) -> None:
        """A head that is not complete yet must not be too large, and is due, but not while an answer is."""
        answering = self.cycle is not None and not self.cycle.response_complete
        if self._head_bytes > MAX_HEAD:
            if answering:
                self.transport.abort()
                return
            self.transport.write(_TOO_LARGE)
            self.transport.close()
        elif self._head_due is None and not answering:
            self._expect_head()

    def _expect_head(self) -> None:
        self._head_due = self.loop.call_later(HEAD_SECONDS, self._give_up)

    def _expect_no_head(self) -> None:
        if self._head_due is not None:
            self._head_due.cancel()
            self._head_due = None

    def _give_up(self) -> None:
        self._head_due = None
        self.transport.abort()


def _without_upgrade(data: bytes) -> bytes:
    """The bytes of a head without its offer to speak another protocol, which nobody here takes up.

    The parser would take such a request to have no body, and Java's client makes the offer with every first one (h2c).
    """
    head, end, rest = data.partition(b"\r\n\r\n")
    return _UPGRADE.sub(b"\r\nx-fairpool-upgrade:", head) + end + rest
