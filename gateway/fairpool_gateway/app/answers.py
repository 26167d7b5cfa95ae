"""How answers are written to a tenant: soon, with what others write, and a head together with what follows it.

uvicorn writes a head and then each piece of the body, and looks at every header by itself. Here are both: a transport
as uvicorn wants it, for the answers of routes, and the short way that answers of endpoints take. What always holds:
whichever way, what is written keeps its order, and all of it goes out before the connection is closed in order.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, RequestResponseCycle

from fairpool_gateway.app.headers import CLOSE, RawHeaders, first
from fairpool_gateway.upstream import message_head
from fairpool_gateway.writes import Writes

LARGE: Final = 32 << 10
"""Bytes. What is larger waits for nobody, so that little is held beside what the transport knows of."""

_BODILESS: Final = frozenset({204, 304})
_CHUNKED: Final = (b"transfer-encoding", b"chunked")
_LAST_CHUNK: Final = b"0\r\n\r\n"


class Answers:
    """A tenant's transport, as far as uvicorn and we use one."""

    __slots__ = ("_transport", "_unwritten", "_writes")

    def __init__(self, transport: asyncio.Transport, writes: Writes) -> None:
        self._transport = transport
        self._writes = writes
        self._unwritten: list[bytes] = []

    def hold(self, head: bytes) -> None:
        """Write this with what is written next, or at `release`."""
        self._unwritten.append(head)

    def release(self) -> None:
        """Nothing follows yet: have what is held go out by itself."""
        if self._unwritten:
            self.write(b"")

    def write(self, data: bytes, *, gather: bool = False) -> None:
        """Write a piece of an answer; `gather` where others may come at the same moment."""
        self._unwritten.append(data)
        if len(data) > LARGE:
            self.write_out()
        elif gather:
            self._writes.gather(self)
        else:
            self._writes.add(self)

    def write_out(self) -> None:
        """Hand all of it to the transport."""
        unwritten, self._unwritten = self._unwritten, []
        if unwritten and not self._transport.is_closing():
            self._transport.writelines(unwritten)

    def close(self) -> None:
        """Close once all of it has gone out."""
        self.write_out()
        self._transport.close()

    def abort(self) -> None:
        """Close at once."""
        self._unwritten.clear()
        self._transport.abort()

    def is_closing(self) -> bool:
        """Whether it is closed, or about to be."""
        return self._transport.is_closing()

    def pause_reading(self) -> None:
        """Read nothing more for now."""
        self._transport.pause_reading()

    def resume_reading(self) -> None:
        """Read on."""
        self._transport.resume_reading()

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        """What the transport knows of its connection."""
        return self._transport.get_extra_info(name, default)


class Answer:
    """An answer that is passed on: begun, and then written piece by piece, as uvicorn's `send` would.

    Args:
        cycle: the request that it answers, as uvicorn has it, and keeps it.
        answers: where it is written.
        status: 200 to 599.
        headers: names in lower case; nothing in them is about the connection. They wait for the first piece, or for
            `release`.
        close: whether the connection ends with it.

    Raises:
        ValueError: there is a line break inside a header.
    """

    __slots__ = ("_answers", "_begun", "_cycle")

    def __init__(
        self, cycle: RequestResponseCycle, answers: Answers, status: int, headers: RawHeaders, *, close: bool
    ) -> None:
        self._answers = answers
        self._begun = False
        self._cycle = cycle
        length = first(headers, b"content-length")
        if close:
            cycle.keep_alive = False
        more = [] if cycle.keep_alive else [CLOSE]
        if length is not None:
            cycle.chunked_encoding = False
            cycle.expected_content_length = int(length)
        elif status not in _BODILESS:
            cycle.chunked_encoding = True
            more.append(_CHUNKED)
        cycle.response_started = True
        cycle.waiting_for_100_continue = False
        answers.hold(message_head(STATUS_LINE[status][:-2], [*headers, *more]))

    def piece(self, data: bytes, *, last: bool = False) -> None:
        """Write a piece of the body; without the last one there is no end that a client would take for one."""
        cycle = self._cycle
        if cycle.disconnected:
            return
        if cycle.chunked_encoding:
            framed = b"%x\r\n%b\r\n" % (len(data), data) if data else b""
            data = framed + _LAST_CHUNK if last else framed
        else:
            cycle.expected_content_length -= len(data)
        # What follows the first piece comes straight from its connection, and with it what other streams send.
        self._answers.write(data, gather=self._begun and not last)
        self._begun = True
        if last:
            cycle.response_complete = True
            cycle.message_event.set()
            if not cycle.keep_alive or cycle.expected_content_length:
                self._answers.close()
            cycle.on_response()

    def release(self) -> None:
        """No piece is here yet: have the head go out by itself."""
        self._begun = True
        self._answers.release()
