"""The reader's side of an answer: waiting for its bytes, holding the endpoint back, letting go."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol

from fairpool_gateway.errors import UpstreamError
from fairpool_gateway.upstream.buffers import Buffers
from fairpool_gateway.upstream.message import Message

Sink = Callable[[bytes], bool]
"""Takes bytes of a body, never none but at its end, and returns whether it takes more at once."""


class Source(Protocol):
    """What bytes come from: the connection, for as long as it carries this answer."""

    def resume(self) -> None:
        """The reader has room for more."""

    def abort(self) -> None:
        """The reader has gone: close at once."""


class Response(Message):
    """An answer whose status and headers came, with at least the first byte of the body or its end.

    One task reads it: by `read` until it returns nothing, or by `pass_to` until it returns true. `close` ends it early,
    and may always be called. A task that is cancelled in either closes it too. What `read` returned, or was too much
    for a sink, counts as waiting here until the next call, so that a reader who is slow holds the endpoint back.
    """

    __slots__ = ("_broken", "_buffers", "_ended", "_loop", "_seen", "_sink", "_source", "_taken", "_waiter")

    def __init__(self, source: Source, loop: asyncio.AbstractEventLoop, buffers: Buffers, *, bodiless: bool) -> None:
        super().__init__(bodiless=bodiless)
        self._buffers = buffers
        self._seen: Callable[[bytes], None] | None = None
        self._ended: Callable[[], None] | None = None
        self._loop = loop
        self._sink: Sink | None = None
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
        self._let_go()
        if not self.held and not self.complete:
            await self.arrival()
        data = self.take()
        self._taken = len(data)
        return data

    async def pass_to(self, sink: Sink) -> bool:
        """Have `sink` called with the body as it comes; returns true at its end, false once the sink has enough.

        What comes is passed on before anything else happens: no task is woken for it, which costs as much as all that
        is done with an event of a stream.

        Raises:
            UpstreamBroken: the answer ended before its end; what had come was passed on before.
            UpstreamTimedOut: the endpoint was silent for too long.
        """
        self._let_go()
        takes_more = True
        while takes_more:
            if self.held or self.complete:
                takes_more = self._hand_to(sink)
                if self.complete:
                    return True
            elif self._broken is not None:
                raise self._broken
            else:
                self._go_on()
                self._sink = sink
                await self._wait()
                takes_more, self._sink = self._sink is not None, None
        return False

    def close(self) -> None:
        """Let go. An answer that is not complete takes its connection with it, which cancels the request."""
        self._buffers.held -= self.waiting
        self._taken = 0
        self._sink = None
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
            await self._wait()

    def arrived(self) -> None:
        """Bytes of the body came."""
        if self._sink is None:
            self.wake()
        elif not self._hand_to(self._sink):
            self._sink = None
            self.wake()

    def wake(self) -> None:
        """Have whoever waits look again."""
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

    async def _wait(self) -> None:
        self._waiter = self._loop.create_future()
        try:
            await self._waiter
        except asyncio.CancelledError:
            self.close()
            raise

    def _hand_to(self, sink: Sink) -> bool:
        """All that is here; returns whether the sink takes more."""
        data = self.take()
        takes_more = sink(data)
        if takes_more:
            self._buffers.held -= len(data)
        else:
            self._taken = len(data)
        return takes_more

    def _let_go(self) -> None:
        """What was taken last is passed on by now: there is room for more."""
        self._buffers.held -= self._taken
        self._taken = 0
        self._go_on()

    def _go_on(self) -> None:
        """Have the endpoint send on, if there is room."""
        if self._source is not None and self._buffers.have_room(self.held):
            self._source.resume()
