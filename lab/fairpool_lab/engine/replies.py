"""How an answer leaves the engine: as it should, or in one of the ways in which answers break.

Each class sends the same two things, a whole body or a stream of events, and does its own harm to them. After a
break the connection is gone, which the request learns as if its client had left.
"""

from __future__ import annotations

import asyncio
import gzip
import zlib
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from random import Random
from typing import Any

from fairpool_lab.engine.faults import Fault, Kind
from fairpool_lab.engine.wire import Wire

Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Headers = Iterable[tuple[bytes, bytes]]

JSON = (b"content-type", b"application/json")
EVENTS = (b"content-type", b"text/event-stream; charset=utf-8")

_EVENT_END = b"\n\n"


class Reply:
    """An answer as it should be."""

    def __init__(self, send: Send) -> None:
        self._send = send

    async def whole(self, body: bytes, *, status: int = 200, headers: Headers = (JSON,)) -> None:
        """A body of known length."""
        await self._start(status, [*headers, (b"content-length", b"%d" % len(body))])
        await self._body(body, last=True)

    async def start(self) -> None:
        """The headers of a stream of events."""
        await self._start(200, [EVENTS])

    async def write(self, events: bytes, *, last: bool) -> None:
        """Whole events of the stream."""
        await self._body(events, last=last)

    async def _start(self, status: int, headers: Headers) -> None:
        await self._send({"type": "http.response.start", "status": status, "headers": headers})

    async def _body(self, body: bytes, *, last: bool) -> None:
        await self._send({"type": "http.response.body", "body": body, "more_body": not last})


class Hanging(Reply):
    """Status and headers, then nothing, for so many seconds or for good."""

    def __init__(self, send: Send, wire: Wire, seconds: float | None) -> None:
        super().__init__(send)
        self._wire = wire
        self._seconds = seconds

    async def _start(self, status: int, headers: Headers) -> None:
        await super()._start(status, headers)
        await self._wire.hang(self._seconds)


class Broken(Reply):
    """So many events, or half of a body, then no connection any more."""

    def __init__(self, send: Send, end: Callable[[], Awaitable[None]], events: int) -> None:
        super().__init__(send)
        self._end = end
        self._left = events

    async def whole(self, body: bytes, *, status: int = 200, headers: Headers = (JSON,)) -> None:
        """Half of the body, then the end."""
        await self._start(status, [*headers, (b"content-length", b"%d" % len(body))])
        await self._body(body[: len(body) // 2], last=False)
        await self._end()

    async def start(self) -> None:
        """Headers; where no event is due, the end too."""
        await super().start()
        if not self._left:
            await self._end()

    async def write(self, events: bytes, *, last: bool) -> None:
        """Events one by one, until as many have gone as should."""
        for event in events.split(_EVENT_END)[:-1]:
            await self._body(event + _EVENT_END, last=False)
            self._left -= 1
            if not self._left:
                await self._end()
                return
        if last:
            await self._body(b"", last=True)


class Slow(Reply):
    """A body as many times later after its request as the factor says, and events as much further apart.

    Tokens go on being made meanwhile, so how far apart events would have been is taken from the settings:
    `event_seconds`, the shortest time in which one is made.
    """

    def __init__(self, send: Send, wire: Wire, factor: float, event_seconds: float) -> None:
        super().__init__(send)
        self._wire = wire
        self._factor = factor
        self._event_seconds = event_seconds
        self._since = asyncio.get_running_loop().time()

    async def whole(self, body: bytes, *, status: int = 200, headers: Headers = (JSON,)) -> None:
        """The body, late."""
        await self._delay(asyncio.get_running_loop().time() - self._since)
        await super().whole(body, status=status, headers=headers)

    async def write(self, events: bytes, *, last: bool) -> None:
        """Events, one by one and late."""
        for event in events.split(_EVENT_END)[:-1]:
            await self._delay(self._event_seconds)
            await self._body(event + _EVENT_END, last=False)
        if last:
            await self._body(b"", last=True)

    async def _delay(self, usual: float) -> None:
        await self._wire.hang(usual * (self._factor - 1))


class Gzipped(Reply):
    """A compressed answer, each write flushed so that events still come as they are made."""

    _ENCODING = (b"content-encoding", b"gzip")

    def __init__(self, send: Send) -> None:
        super().__init__(send)
        self._compressor = zlib.compressobj(wbits=zlib.MAX_WBITS | 16)

    async def whole(self, body: bytes, *, status: int = 200, headers: Headers = (JSON,)) -> None:
        """The body, compressed as a whole."""
        await super().whole(gzip.compress(body, mtime=0), status=status, headers=[*headers, self._ENCODING])

    async def start(self) -> None:
        """Headers that say how it is compressed."""
        await self._start(200, [EVENTS, self._ENCODING])

    async def write(self, events: bytes, *, last: bool) -> None:
        """Events, each time flushed."""
        flush = zlib.Z_FINISH if last else zlib.Z_SYNC_FLUSH
        await self._body(self._compressor.compress(events) + self._compressor.flush(flush), last=last)


def reply_for(fault: Fault | None, send: Send, wire: Wire, seed: int, event_seconds: float) -> Reply:
    """The reply that does what the fault says; an ordinary one for faults that lie elsewhere."""
    reply = Reply(send)
    if fault is None:
        return reply
    argument = fault.argument
    match fault.kind:
        case Kind.HANG_AFTER:
            reply = Hanging(send, wire, argument)
        case Kind.DIE:
            reply = Broken(send, wire.reset, int(argument or 0))
        case Kind.TRUNCATE:
            reply = Broken(send, wire.cut, int(argument or 0))
        case Kind.SLOW:
            reply = Slow(send, wire, argument or 1, event_seconds)
        case Kind.GZIP:
            reply = Gzipped(send)
        case Kind.SPLIT:
            wire.split(Random(seed), int(argument or 1))  # noqa: S311 - where to cut, reproducibly
    return reply
