"""The reader's side of an answer: waiting for its bytes, holding the endpoint back, letting go."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol

from fairpool_gateway.errors import UpstreamError
from fairpool_gateway.upstream.buffers import Buffers
from fairpool_gateway.upstream.message import Message


class Source(Protocol):
    """What bytes come from: the connection, for as long as it carries this answer."""

    def resume(self) -> None:
        """The reader has room for more."""

    def abort(self) -> None:
        """The reader has gone: close at once."""


class Response(Message):
    """An answer whose status and headers came, with at least the first byte of the body or its end.

    One task reads it: `read` until it returns nothing. `close` ends it early, and may always be called. A task
    that is cancelled in `read` closes it too. What `read` returned counts as waiting here until the next `read`, so
    that a reader who first passes it on holds the endpoint back by being slow.
    """

    __slots__ = ("_broken", "_buffers", "_ended", "_loop", "_seen", "_source", "_taken", "_waiter")

    def __init__(self, source: Source, loop: asyncio.AbstractEventLoop, buffers: Buffers, *, bodiless: bool) -> None:
        super().__init__(bodiless=bodiless)
        self._buffers = buffers
        self._seen: Callable[[bytes], None] | None = None
        self._ended: Callable[[], None] | None = None
        self._loop = loop
        self._source: Source | None = source
        self._taken = 0
        self._waiter: asyncio.Future[None] | None = None
        self._broken: UpstreamError | None = None

    @property
    def waiting(self) -> int:
        """Bytes of it that are here: those that came, and those that the reader took last."""
        return self.held + self._taken

    async def read(self) -> bytes:
        """All of the body that came since the last call, at least a byte; nothing once the body has ended.

        Raises:
            UpstreamBroken: the answer ended before its end; what had come was returned before.
            UpstreamTimedOut: the endpoint was silent for too long.
        """
        self._buffers.held -= self._taken
        self._taken = 0
        if self._source is not None and self._buffers.have_room(self.held):
            self._source.resume()
        if not self.held and not self.complete:
            await self.arrival()
        data = self.take()
        self._taken = len(data)
        return data

    def close(self) -> None:
        """Let go. An answer that is not complete takes its connection with it, which cancels the request."""
        self._buffers.held -= self.waiting
        self._taken = 0
        self._buffers = Buffers()
        if self._source is not None:
            self._source.abort()

    def watch(self, seen: Callable[[bytes], None], ended: Callable[[], None]) -> None:
        """Have `seen` called with the body as it comes, read or not, and `ended` once it is complete or broken."""
        for piece in self.pieces:
            seen(piece)
        if self._source is None:
            ended()
        else:
            self._seen, self._ended = seen, ended

    def on_body(self, data: bytes) -> None:
        """A piece of the body."""
        super().on_body(data)
        if self._seen is not None:
            self._seen(data)

    async def arrival(self) -> None:
        """Wait for bytes of the body or its end."""
        while not self.held and not self.complete:
            if self._broken is not None:
                raise self._broken
            self._waiter = self._loop.create_future()
            try:
                await self._waiter
            except asyncio.CancelledError:
                self.close()
                raise

    def wake(self) -> None:
        """Something came that `arrival` waits for."""
        waiter = self._waiter
        if waiter is not None:
            self._waiter = None
            if not waiter.done():
                waiter.set_result(None)

    def finish(self, broken: UpstreamError | None = None) -> None:
        """The connection carries this answer no longer."""
        self._source = None
        self._broken = broken
        self.stop()
        self.wake()
        ended, self._seen, self._ended = self._ended, None, None
        if ended is not None:
            ended()
