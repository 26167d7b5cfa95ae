"""The server's side of a tenant's connection: uvicorn's, with bounds on what comes and on how long it takes.

uvicorn with httptools takes headers of any size and number and waits for their end, and for that of a body, for ever.
Here a head above `MAX_HEAD` bytes or `MAX_FIELDS` fields is answered with 431, and a head that is not complete after
`HEAD_SECONDS` ends its connection, as does a connection that sends nothing at all. A body has to bring `BODY_BYTES` in
each `BODY_SECONDS`, or its end. So what a connection can hold, before anybody knows whose it is, is bounded: a head, a
read of the socket, and `MOST_BEHIND` requests behind one in flight. All of it goes with the connection.

What is no HTTP is refused like anything else. What always holds: not a byte of that goes out before the answers to the
requests that came before it have, and none of them is cut short for it; what comes behind it is not read. And what
follows a body in chunks (trailers) is never taken for a header, which others may have looked at already.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from typing import Any, Final

from httptools import HttpParserError, HttpParserUpgrade, HttpRequestParser
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

from fairpool_gateway.app.dialect import OPENAI
from fairpool_gateway.errors import HeadersTooLarge, InvalidRequest, Refused

MAX_HEAD: Final = 64 << 10
MAX_FIELDS: Final = 256
"""Each field costs some 150 bytes here beyond its own, so thousands of short ones would cost more than they weigh."""

HEAD_SECONDS = 10.0
BODY_SECONDS = 20.0
BODY_BYTES: Final = 8 << 10
"""Some 400 bytes a second: the slowest of uplinks has more, and whoever has less holds a place for nothing."""

MOST_BEHIND: Final = 16
"""Requests that may come before the one in flight is answered. Hardly any client sends a second one."""

Note = Callable[[Refused], bytes]
"""Notes the refusal of what has not become a request; returns the id by which it is found again."""


class BoundedProtocol(HttpToolsProtocol):
    """One connection of a tenant.

    Attributes:
        late: whether the body that is under way did not come in time.
    """

    def __init__(self, *args: Any, note: Note | None = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.late = False
        self._note = note
        self._in_head = True
        self._offer = b""
        self._bare = 0
        self._no_http = False
        self._head_bytes = 0
        self._head_due: asyncio.TimerHandle | None = None
        self._body_timer: asyncio.TimerHandle | None = None
        self._body_due = 0.0
        self._owed = 0
        self._idle_until = math.inf
        self._in_flight: RequestResponseCycle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        """A tenant connected: its first head is due."""
        super().connection_made(transport)
        self._expect_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection is closed."""
        self._expect_no_head()
        self._expect_no_body()
        self.pipeline.clear()
        # uvicorn tells the request that came last, which is not the one in flight where several came.
        if self._in_flight is not None and not self._in_flight.response_complete:
            self._in_flight.disconnected = True
            self._in_flight.message_event.set()
        super().connection_lost(exc)
        self._unset_keepalive_if_required()
        # What it held goes now, and not when the garbage collector finds the circles in it, which may take hours.
        self._in_flight = None
        self.cycle = self.scope = self.headers = None  # type: ignore[assignment]  # nobody asks for them any more

    def data_received(self, data: bytes) -> None:
        """Bytes from the tenant; those of a head are counted until it is complete."""
        if self._no_http:
            return
        if self._in_head:
            self._head_bytes += len(data)
        else:
            self._bare += len(data)
        self._idle_until = math.inf
        try:
            self.parser.feed_data(data)
        except HttpParserUpgrade as end:
            if self._offer:
                self._pass_over_offer(data[end.args[0] :])
                return
            # CONNECT: answered like any other request, and what follows it is no HTTP.
        except HttpParserError as error:
            told = error.__context__
            self._end_with_no_http(told if isinstance(told, HeadersTooLarge) else _no_http())
            return
        if self._bare > MAX_HEAD:
            self._end_with_no_http(_no_http())
            return
        if self.transport.is_closing():
            return
        if self._head_bytes:
            self._check_head()
        if not self._in_head:
            self._check_body()

    def on_header(self, name: bytes, value: bytes) -> None:
        """A header, or what follows a body in chunks."""
        if not self._in_head:
            return
        if len(self.headers) == MAX_FIELDS:
            raise HeadersTooLarge(f"There are more than {MAX_FIELDS} headers. Send fewer.")
        name = name.lower()
        if name == b"expect" and value.lower() == b"100-continue":
            self.expect_100_continue = True
        self.headers.append((name, value))

    def on_headers_complete(self) -> None:
        """The head is complete; a body may follow, of which a refused tenant may send as much as it said."""
        if self._head_bytes > MAX_HEAD and len(self.url) + _size(self.headers) > MAX_HEAD:
            raise _too_large()
        if self.parser.should_upgrade() and self.parser.get_method() != b"CONNECT":
            self._offer = self._head_without_offer()
            return
        if len(self.pipeline) == MOST_BEHIND:
            raise HttpParserError("more requests than are taken before the first of them is answered")
        super().on_headers_complete()
        if self.pipeline:
            self.flow.resume_reading()  # Or nobody would notice that the tenant leaves.
        self._in_head = False
        self._head_bytes = 0
        self._idle_until = math.inf
        self._expect_no_head()

    def on_body(self, body: bytes) -> None:
        """A piece of a body. What frames its chunks, and follows them, is borne as far as a head is.

        Once the request is answered a piece brings no more time to bring the rest.
        """
        self._bare = 0
        if not self.cycle.response_complete:
            self._owed -= len(body)
        super().on_body(body)

    def on_message_complete(self) -> None:
        """The request is complete; another may follow, even before this one is answered."""
        if self._offer:
            return
        super().on_message_complete()
        self._in_head = True
        self._bare = 0
        self._expect_no_body()
        if self.cycle.response_complete:  # It was refused before its body came.
            self._be_idle()

    def on_response_complete(self) -> None:
        """An answer is complete: the next request that is here has its turn, or there are seconds to send one.

        uvicorn sets a timer with each answer and ends it with each request, for 2 us; here a connection has one at
        most, that looks how long it has been idle for when it fires.
        """
        self.server_state.total_requests += 1
        if self.transport.is_closing():
            return
        self.flow.resume_reading()
        if self.pipeline:
            self._start_asgi_task(*self.pipeline.pop())
            return
        self._be_idle()

    def _be_idle(self) -> None:
        """From now on there are so many seconds for the next request."""
        self._idle_until = self.loop.time() + self.timeout_keep_alive
        if self.timeout_keep_alive_task is None:
            self.timeout_keep_alive_task = self.loop.call_at(self._idle_until, self.timeout_keep_alive_handler)

    def timeout_keep_alive_handler(self) -> None:
        """Time has passed: close, if nothing came for so long."""
        self.timeout_keep_alive_task = None
        if self._idle_until <= self.loop.time():
            super().timeout_keep_alive_handler()
        elif self._idle_until < math.inf:
            self.timeout_keep_alive_task = self.loop.call_at(self._idle_until, self.timeout_keep_alive_handler)

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        self._in_flight = cycle
        super()._start_asgi_task(cycle, app)

    def _head_without_offer(self) -> bytes:
        """This head without its offer to speak another protocol, which nobody here takes up."""
        version = self.parser.get_http_version().encode()
        fields = b"".join(b"%b: %b\r\n" % field for field in self.headers if field[0] != b"upgrade")
        return b"%b %b HTTP/%b\r\n%b\r\n" % (self.parser.get_method(), self.url, version, fields)

    def _pass_over_offer(self, rest: bytes) -> None:
        """Read the request again as if it held no offer. Java's client makes one (h2c) with every first request.

        The parser takes such a request to have no body, and what follows its head to be no HTTP.
        """
        head, self._offer = self._offer, b""
        self._head_bytes = 0
        self.parser = HttpRequestParser(self)
        self.data_received(head + rest)

    def _check_head(self) -> None:
        """A head that is not complete yet must not be too large, and is due, but not while an answer is."""
        answering = self.cycle is not None and not self.cycle.response_complete
        if self._head_bytes > MAX_HEAD:
            if answering:
                self.transport.abort()
            else:
                self._refuse(_too_large())
        elif self._head_due is None and not answering:
            self._expect_head()

    def _end_with_no_http(self, refusal: Refused) -> None:
        """Nothing of what comes now can be read: end as soon as what was read before is answered."""
        self._no_http = True
        self._expect_no_head()
        self._expect_no_body()
        cycle = self.cycle
        if cycle is not None and not cycle.response_complete:
            cycle.keep_alive = False
            if not self._in_head:
                # A piece of nothing that is not the last tells whoever reads this body that it cannot be read.
                cycle.body.clear()
                cycle.message_event.set()
        elif self._in_head:
            self._refuse(refusal)
        else:
            self.transport.close()

    def _refuse(self, refusal: Refused) -> None:
        """Answer what has not become a request, and close."""
        body = OPENAI.refusal(refusal)
        headers = [*refusal.headers(spread=0), (b"content-length", b"%d" % len(body)), (b"connection", b"close")]
        if self._note is not None:
            headers.append((b"x-request-id", self._note(refusal)))
        lines = b"".join(b"%b: %b\r\n" % header for header in headers)
        self.transport.write(b"%b%b\r\n%b" % (STATUS_LINE[refusal.status], lines, body))
        self.transport.close()

    def _expect_head(self) -> None:
        self._head_due = self.loop.call_later(HEAD_SECONDS, self._give_up)

    def _expect_no_head(self) -> None:
        if self._head_due is not None:
            self._head_due.cancel()
            self._head_due = None

    def _give_up(self) -> None:
        self._head_due = None
        self.transport.abort()

    def _check_body(self) -> None:
        """A body that is not complete yet is due."""
        if self._body_timer is None:
            self._expect_body(BODY_SECONDS)
            self._owe()
        elif self._owed <= 0:
            self._owe()

    def _owe(self) -> None:
        self._owed = BODY_BYTES
        self._body_due = self.loop.time() + BODY_SECONDS

    def _expect_body(self, within: float) -> None:
        self._body_timer = self.loop.call_later(within, self._look_for_body)

    def _expect_no_body(self) -> None:
        if self._body_timer is not None:
            self._body_timer.cancel()
            self._body_timer = None

    def _look_for_body(self) -> None:
        """Time has passed: the tenant is late, unless more came meanwhile, or was not taken from it."""
        if self.flow.read_paused:
            self._owe()
        left = self._body_due - self.loop.time()
        if left > 0:
            self._expect_body(left)
        elif self.cycle.response_started:
            self.transport.abort()
        else:
            self.late = True
            self.cycle.message_event.set()
            self._expect_body(HEAD_SECONDS)


def _no_http() -> Refused:
    return InvalidRequest("This is no HTTP/1.1 request that can be read.")


def _too_large() -> Refused:
    return HeadersTooLarge(f"The headers exceed {MAX_HEAD} bytes. Send fewer or shorter ones.")


def _size(headers: list[tuple[bytes, bytes]]) -> int:
    return sum(len(name) + len(value) + len(b": \r\n") for name, value in headers)
