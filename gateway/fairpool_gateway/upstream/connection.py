"""One connection to an endpoint: carries one exchange at a time, and keeps its time-outs.

Bytes go out as they were given and come back through `Message`. The connection is returned to the pool while the
last byte is being handled, before any reader runs; anything else that ends an exchange closes it at once.

There is one timer per connection, and it is seldom set: it fires at a time not later than the deadline, which moves
on with each byte, looks whether the deadline is still ahead, and if so is set again. An exchange in a busy pool
touches no timer (each would cost 1.2 us).
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterable, AsyncIterator
from typing import Final, cast

from fairpool_gateway.errors import UpstreamBroken, UpstreamError, UpstreamTimedOut
from fairpool_gateway.upstream.buffers import Buffers, hold_little
from fairpool_gateway.upstream.pool import Pool
from fairpool_gateway.upstream.response import Response
from fairpool_gateway.upstream.target import Target, Timeouts
from fairpool_gateway.writes import Writes

_CLOCK_STEP: Final = 0.001
"""Seconds. uvloop counts timers in whole milliseconds, so that they may fire a little early."""

_PIECE: Final = 1 << 16
"""Bytes. TLS takes what it is given at once, and tells that it is too much at the next write only."""


class Connection(asyncio.Protocol):
    """A connection to `target`, living from `connection_made` to `connection_lost`.

    Args:
        loop: the running event loop.
        target: where it leads.
        pool: where it waits between exchanges.
        buffers: what waits of this answer and others.
        writes: what is about to be written, here and elsewhere.
        keepalive: seconds it may wait there.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        target: Target,
        pool: Pool[Connection],
        buffers: Buffers,
        writes: Writes,
        keepalive: float,
    ) -> None:
        self.lost: asyncio.Future[None] = loop.create_future()
        self._loop = loop
        self._target = target
        self._pool = pool
        self._buffers = buffers
        self._writes = writes
        self._keepalive = keepalive
        self._response: Response | None = None
        self._timeouts = Timeouts(math.inf, math.inf, math.inf)
        self._transport: asyncio.Transport
        self._reading_paused = False
        self._uploading = False
        self._unwritten: tuple[bytes, ...] = ()
        self._writable: asyncio.Future[None] | None = None
        self._deadline = self._alarm_at = math.inf
        self._alarm: asyncio.TimerHandle | None = None

    async def exchange(self, head: bytes, body: bytes | AsyncIterable[bytes], timeouts: Timeouts) -> Response:
        """Send a request; returns when the first byte of the answer's body came, or its end.

        Raises:
            UpstreamBroken: the connection was lost, or the answer is no HTTP.
            UpstreamTimedOut: no byte of the body in time.
        """
        if self._transport.is_closing():
            raise UpstreamBroken("the connection was closed before the request", answered=False)
        response = self._response = Response(self, self._loop, self._buffers, bodiless=head.startswith(b"HEAD "))
        self._timeouts = timeouts
        try:
            if not isinstance(body, bytes):
                await self._upload(head, body)
            elif self._target.tls is not None and len(body) > _PIECE:
                await self._upload(head, _in_pieces(body))
            else:
                self._unwritten = (head, body)
                self._writes.add(self)
                self._await_endpoint()
            await response.arrival()
        except BaseException:
            response.close()
            raise
        return response

    async def _upload(self, head: bytes, body: AsyncIterable[bytes]) -> None:
        """Send a body part by part, no faster than the endpoint takes it, until the answer ends or breaks."""
        self._uploading = True
        self._transport.write(head)
        self._await_endpoint()
        async for part in body:
            if self._response is None:
                return
            self._transport.write(part)
            if self._writable is not None:
                self._await_endpoint()
                await self._writable
                self._await_endpoint()
        self._uploading = False
        self._await_endpoint()

    def write_out(self) -> None:
        """Write the request, unless its exchange was given up meanwhile."""
        unwritten, self._unwritten = self._unwritten, ()
        if unwritten:
            self._transport.writelines(unwritten)

    def abort(self) -> None:
        """Close at once, whatever is going on."""
        self._lose("the exchange was given up")

    def resume(self) -> None:
        """The reader has room for more."""
        if self._reading_paused:
            self._reading_paused = False
            self._transport.resume_reading()
            self._await_endpoint()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The event loop has connected."""
        self._transport = cast(asyncio.Transport, transport)
        hold_little(transport)

    def data_received(self, data: bytes) -> None:
        """Bytes from the endpoint."""
        self._writes.came()
        response = self._response
        if response is None:
            self._close()
            return
        if self._unwritten:
            self._lose("it spoke before it was asked")
            return
        held, broken = response.held, None
        try:
            response.feed(data)
        except UpstreamBroken as error:
            broken = error
        self._buffers.held += response.held - held
        if broken is not None:
            self._end(broken)
        elif response.complete:
            self._complete(response)
        elif response.begun:
            response.arrived()
            if not self._buffers.have_room(response.waiting):
                self._reading_paused = True
                self._transport.pause_reading()
            self._await_endpoint()

    def eof_received(self) -> None:
        """The endpoint will send no more."""
        response = self._response
        if response is not None:
            response.feed_eof()
            if response.complete:
                self._complete(response)
        self._lose("the endpoint closed the connection")

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection is closed, by whichever side."""
        self._lose(f"the connection broke: {exc or 'closed'}")
        if self._alarm is not None:
            self._alarm.cancel()
        self.lost.set_result(None)

    def pause_writing(self) -> None:
        """The endpoint takes bytes slower than they come."""
        self._writable = self._loop.create_future()

    def resume_writing(self) -> None:
        """The endpoint has caught up, or nothing will be sent any more."""
        if self._writable is not None:
            if not self._writable.done():
                self._writable.set_result(None)
            self._writable = None

    def _complete(self, response: Response) -> None:
        """The last byte was read. Into the pool, unless something of this exchange is still under way."""
        self._response = None
        busy = self._uploading or self._writable is not None
        if response.reusable and not busy and self._pool.put(self._target, self):
            self._expect(self._keepalive)
        else:
            self._close()
        response.finish()

    def _lose(self, why: str) -> None:
        response = self._response
        self._end(UpstreamBroken(why, answered=response is not None and response.received > 0))

    def _end(self, error: UpstreamError) -> None:
        """Close, and break the answer that is under way."""
        response, self._response = self._response, None
        self._close()
        if response is not None:
            response.finish(error)

    def _close(self) -> None:
        self._pool.discard(self._target, self)
        self._unwritten = ()
        self._transport.abort()
        self.resume_writing()

    def _await_endpoint(self) -> None:
        """From now on the endpoint's silence counts, if it is its turn to speak, or to take what we send."""
        response = self._response
        if response is None:
            return
        waiting_for_reader = self._reading_paused
        waiting_for_caller = self._uploading and self._writable is None
        if waiting_for_reader or waiting_for_caller:
            self._deadline = math.inf
        elif response.begun or self._uploading:
            self._expect(self._timeouts.idle)
        else:
            self._expect(self._timeouts.first_byte)

    def _expect(self, seconds: float) -> None:
        """From now on, so much silence ends what is going on."""
        self._deadline = deadline = self._loop.time() + seconds
        if deadline < self._alarm_at:
            self._set_alarm(deadline)

    def _set_alarm(self, when: float) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
        self._alarm_at = when
        self._alarm = self._loop.call_at(when, self._on_alarm)

    def _on_alarm(self) -> None:
        self._alarm = None
        self._alarm_at = math.inf
        if self._deadline > self._loop.time() + _CLOCK_STEP:
            self._set_alarm(self._deadline)
            return
        response = self._response
        if response is not None and (response.begun or self._uploading):
            self._end(UpstreamTimedOut(f"silent for {self._timeouts.idle:g} s"))
        else:
            self._end(UpstreamTimedOut(f"no first byte within {self._timeouts.first_byte:g} s"))


async def _in_pieces(body: bytes) -> AsyncIterator[bytes]:
    for start in range(0, len(body), _PIECE):
        yield body[start : start + _PIECE]
