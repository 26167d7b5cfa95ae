"""A tenant's connection, below ASGI: to learn at once that the tenant left, and to cut an answer that broke.

ASGI tells of a disconnect only those who wait for it, which takes a task for each request, and an exception to end it
that only the garbage collector clears away. And it cannot leave an answer unfinished without an error in the log. What
always holds: whoever watches is told as soon as the connection is seen to be lost.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, Final

from fairpool_gateway.app.answers import Answer, Answers
from fairpool_gateway.app.headers import RawHeaders
from fairpool_gateway.app.protocol import BODY_BYTES, BODY_SECONDS, BoundedProtocol
from fairpool_gateway.errors import BodyTimeout
from fairpool_gateway.writes import Writes

_EXTENSION: Final = "fairpool.connection"

Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]


class TenantConnection(BoundedProtocol):
    """uvicorn's protocol; each request on it finds it in its scope, with `connection_of`."""

    def __init__(self, *args: Any, writes: Writes, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._writes = writes
        self._gone = asyncio.Event()
        self._on_gone: Callable[[], object] | None = None
        self._extensions = {_EXTENSION: self}

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        """A tenant connected."""
        self._answers = Answers(transport, self._writes)
        super().connection_made(self._answers)  # type: ignore[arg-type]  # all of a transport that it uses

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection is gone, from whichever side."""
        super().connection_lost(exc)
        self._extensions = {}
        self._gone.set()
        if self._on_gone is not None:
            self._on_gone()

    def on_message_begin(self) -> None:
        """A request begins, and with it its scope."""
        super().on_message_begin()
        scope: MutableMapping[str, Any] = self.scope  # type: ignore[assignment]  # extensions are of any type
        scope["extensions"] = self._extensions

    def data_received(self, data: bytes) -> None:
        """Bytes from the tenant."""
        self._writes.came()
        super().data_received(data)

    def eof_received(self) -> None:
        """The tenant sends nothing more, and the transport closes: first what is written for it."""
        self._answers.write_out()
        super().eof_received()

    def answer(self, status: int, headers: RawHeaders, *, close: bool) -> Answer:
        """Begin the answer to the request in flight, that an endpoint gave; raises what `Answer` raises."""
        assert self._in_flight is not None
        return Answer(self._in_flight, self._answers, status, headers, close=close)

    def watch(self, on_gone: Callable[[], object] | None) -> None:
        """Call this when the connection is lost, at once if it already is; None: nobody watches any more."""
        self._on_gone = on_gone
        if on_gone is None:
            return
        # A large body leaves reading paused, and the end of a connection is something that is read.
        self.flow.resume_reading()
        if self._gone.is_set():
            on_gone()

    def body_at_hand(self) -> bytes | None:
        """The body of the request in flight, if all of it is here, as `receive` would give it; None if it is not."""
        cycle = self._in_flight
        if cycle is None or cycle.more_body or cycle.disconnected or self.late:
            return None
        body, cycle.body = bytes(cycle.body), bytearray()
        return body

    def in_time(self, receive: Receive) -> Receive:
        """The request's `receive`, that raises `BodyTimeout` when its body does not come in time."""

        async def receive_in_time() -> MutableMapping[str, Any]:
            message = await receive()
            if self.late:
                raise BodyTimeout(
                    f"The body stopped coming: send at least {BODY_BYTES >> 10} KiB of it every {BODY_SECONDS:g} s."
                )
            return message

        return receive_in_time

    @property
    def takes_more(self) -> bool:
        """Whether the tenant has taken nearly all that was sent."""
        return not self.flow.write_paused

    async def drained(self) -> None:
        """Wait until the tenant has taken nearly all that was sent."""
        if self.flow.write_paused:
            await self.flow.drain()

    def take_leave(self) -> None:
        """Have the answer that is due now say `Connection: close`, unless it has begun or another request follows it.

        Whoever asks again on this connection would cross with its end.
        """
        if self.cycle is not None and not self.cycle.response_started and not self.pipeline:
            self.cycle.keep_alive = False

    async def cut(self) -> None:
        """Close when what was sent has gone out, whatever is missing; returns when the connection is gone."""
        self._answers.close()
        await self._gone.wait()


def connection_of(scope: MutableMapping[str, Any]) -> TenantConnection:
    """The connection that a request came on."""
    connection: TenantConnection = scope["extensions"][_EXTENSION]
    return connection
