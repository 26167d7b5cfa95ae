"""What lies below ASGI: to learn at once that a client has left, and to break a connection in every way there is.

uvicorn's protocol puts a `Wire` into each request's scope, under `extensions`. There is one per connection, and
requests on it follow each other, so it belongs to the request in whose scope it is found until that is answered.
"""

from __future__ import annotations

import asyncio
import socket
import struct
from collections import deque
from collections.abc import Callable, MutableMapping
from random import Random
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

EXTENSION = "fairpool.wire"

_SEGMENT_GAP = 0.000_5
"""Seconds between two segments, so that a reader on the same machine sees them apart."""

_RESET = struct.pack("ii", 1, 0)
"""SO_LINGER of zero seconds: closing sends RST."""


class Wire:
    """One connection of a client."""

    __slots__ = ("_lost", "_on_lost", "_protocol", "hanging")

    def __init__(self, protocol: WiredProtocol) -> None:
        self.hanging = False
        self._protocol = protocol
        self._on_lost: Callable[[], None] | None = None
        self._lost = asyncio.Event()

    def watch(self, on_lost: Callable[[], None] | None) -> None:
        """Call this once when the connection is lost, at once if it already is; None to forget it."""
        self._on_lost = on_lost
        if on_lost is not None and self._lost.is_set():
            on_lost()

    async def lost(self) -> None:
        """Wait until the connection is gone."""
        await self._lost.wait()

    async def hang(self, seconds: float | None) -> bool:
        """Do nothing for so long, or for good, or until the connection is gone; returns whether it is."""
        self.hanging = True
        try:
            async with asyncio.timeout(seconds):
                await self._lost.wait()
        except TimeoutError:
            return False
        finally:
            self.hanging = False
        return True

    async def reset(self) -> None:
        """Break the connection with a RST, and wait until it is gone."""
        self.drop()
        await self._lost.wait()

    def drop(self) -> None:
        """Break the connection with a RST."""
        transport = self._protocol.transport
        raw = transport.get_extra_info("socket")
        if raw is not None and not transport.is_closing():
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        transport.abort()

    async def cut(self) -> None:
        """Send what is buffered, close in an orderly way (FIN) whatever is missing, and wait until it is gone."""
        self._protocol.cycle.transport.close()
        await self._lost.wait()

    def split(self, random: Random, most: int) -> None:
        """From here on, send this answer in segments of 1 to `most` bytes."""
        cycle = self._protocol.cycle
        cycle.transport = Splitter(cycle.transport, random, most)

    def connection_lost(self) -> None:
        """Told by the protocol."""
        self._lost.set()
        on_lost, self._on_lost = self._on_lost, None
        if on_lost is not None:
            on_lost()


class WiredProtocol(HttpToolsProtocol):
    """uvicorn's protocol, with a `Wire` in the scope of each request."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # as uvicorn narrows it
        """A client has connected."""
        super().connection_made(transport)
        self.wire = Wire(self)
        self._extensions = {EXTENSION: self.wire}

    def on_message_begin(self) -> None:
        """A request begins, and with it its scope."""
        super().on_message_begin()
        scope: MutableMapping[str, Any] = self.scope  # type: ignore[assignment] # extensions are of any server's own type
        scope["extensions"] = self._extensions

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection is gone, from whichever side."""
        super().connection_lost(exc)
        self.wire.connection_lost()


class Splitter(asyncio.Transport):
    """A transport that sends in small segments, one at a time; closing waits for the last."""

    def __init__(self, transport: asyncio.Transport, random: Random, most: int) -> None:
        super().__init__()
        self._transport = transport
        self._random = random
        self._most = most
        self._pending: deque[bytes] = deque()
        self._closing = False
        self._loop = asyncio.get_running_loop()

    def write(self, data: Any) -> None:
        """Send this in segments, after what is still waiting to be sent."""
        data = bytes(data)
        idle = not self._pending
        start = 0
        while start < len(data):
            end = start + self._random.randint(1, self._most)
            self._pending.append(data[start:end])
            start = end
        if idle and self._pending:
            self._send()

    def close(self) -> None:
        """Close once all has been sent."""
        self._closing = True
        if not self._pending:
            self._transport.close()

    def is_closing(self) -> bool:
        """Whether it is closed, or will be."""
        return self._closing or self._transport.is_closing()

    def _send(self) -> None:
        if self._transport.is_closing():
            self._pending.clear()
            return
        self._transport.write(self._pending.popleft())
        if self._pending:
            self._loop.call_later(_SEGMENT_GAP, self._send)
        elif self._closing:
            self._transport.close()
