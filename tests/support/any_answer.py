"""What an endpoint may put on the wire for an answer, good and bad, and what a client that reads it directly would see.

The judge is h11, an HTTP implementation that shares no line with the gateway's parser.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import h11
from hypothesis import strategies as st
from support.answers import EXTENSIONS, INTERIMS, TRAILERS, VALUES, split

_ANY_HEAD = 1 << 20
_HUGE = 40_000


@dataclass(frozen=True, repr=False)
class Script:
    """The bytes of one answer, where they are cut, and how the connection goes on: kept, ended or reset."""

    wire: bytes
    cuts: tuple[int, ...] = ()
    then: str = "keep"

    def __repr__(self) -> str:
        wire = repr(self.wire).replace("y" * _HUGE, "' + b'y' * _HUGE + b'")
        return f"Script({wire}, {self.cuts if len(self.cuts) < 10 else '(...)'}, {self.then!r})"

    @property
    def segments(self) -> list[bytes]:
        """The bytes as they are sent."""
        return split(self.wire, (cut for cut in self.cuts if cut <= len(self.wire)))


@dataclass(frozen=True)
class Seen:
    """What a client made of an answer; `status` 0: of a head there was no end.

    Attributes:
        valid: whether what came was HTTP.
        complete: whether its end was seen.
    """

    status: int = 0
    headers: Sequence[tuple[bytes, bytes]] = ()
    body: bytes = b""
    complete: bool = False
    valid: bool = True

    @property
    def began(self) -> bool:
        """Whether there is anything that could be passed on."""
        return self.status > 0 and (self.body != b"" or self.complete)

    @property
    def size_of_headers(self) -> int:
        """Their bytes on the wire."""
        return sum(len(name) + len(value) + 4 for name, value in self.headers)

    def header(self, name: bytes) -> bytes | None:
        """The first value of a header."""
        return next((value for key, value in self.headers if key == name), None)


class Reader:
    """A client of one answer, by h11."""

    def __init__(self) -> None:
        self._http = h11.Connection(h11.CLIENT, max_incomplete_event_size=_ANY_HEAD)
        self._http.send(h11.Request(method="POST", target="/", headers=[("host", "x"), ("content-length", "0")]))
        self._http.send(h11.EndOfMessage())
        self.seen = Seen()

    def feed(self, data: bytes) -> Seen:
        """The next bytes, or none at the end of the connection; what is seen by now."""
        if self.seen.complete or not self.seen.valid:
            return self.seen
        try:
            self._http.receive_data(data)
            while True:
                event = self._http.next_event()
                if isinstance(event, h11.Response):
                    headers = tuple((bytes(name), bytes(value)) for name, value in event.headers)
                    self.seen = replace(self.seen, status=event.status_code, headers=headers)
                elif isinstance(event, h11.Data):
                    self.seen = replace(self.seen, body=self.seen.body + bytes(event.data))
                elif isinstance(event, h11.EndOfMessage):
                    self.seen = replace(self.seen, complete=True)
                    break
                elif not isinstance(event, h11.InformationalResponse):
                    break
        except h11.RemoteProtocolError:
            # An end that comes too early is no fault of what came before it.
            self.seen = replace(self.seen, valid=not data)
        return self.seen


def seen_directly(script: Script) -> Seen:
    """What a client sees that asks the endpoint itself. Of a connection that is reset it sees no end."""
    reader = Reader()
    seen = reader.feed(script.wire)
    return reader.feed(b"") if script.then == "end" else seen


def _names(letters: str) -> st.SearchStrategy[bytes]:
    return st.text(letters, min_size=1, max_size=6).map(lambda text: f"X-{text}".encode())


_headers = st.lists(
    st.tuples(
        st.sampled_from([b"Set-Cookie", b"set-cookie", b"Content-Type", b"Retry-After", b"X-Request-Id", b"Trailer"])
        | _names("abYZ09!#$%&'*+.^_`|~-"),
        VALUES,
    )
    | st.sampled_from([
        (b"Content-Encoding", b"gzip"),
        (b"Set-Cookie", b"a=1"), (b"Set-Cookie", b"b=2"), (b"Keep-Alive", b"timeout=5"), (b"X-Huge", b"y" * _HUGE),
    ]),
    max_size=5,
)  # fmt: skip
_pieces = st.sampled_from([
    b"data: {}", b"data: \xe2\x82\xac", b"event: x", b": ping", b"id", b"\n", b"\n\n", b"\r\n", b"\r\n\r\n", b"\r\r",
    b"data: [DONE]\n\n", b'data: {"usage": {"prompt_tokens": 3, "completion_tokens": 2}}\n\n', b"\xff\x00", b"\xf0\x9f",
])  # fmt: skip
_bodies = st.lists(_pieces, max_size=8).map(b"".join) | st.binary(max_size=40)
_statuses = st.sampled_from([200, 200, 200, 201, 204, 205, 302, 304, 400, 429, 500, 503, 599])


def _in_chunks(draw: st.DrawFn, body: bytes) -> bytes:
    cuts = draw(st.lists(st.integers(0, len(body)), max_size=4))
    chunks = [b"%x%b\r\n%b\r\n" % (len(part), draw(EXTENSIONS), part) for part in split(body, cuts)]
    return b"".join(chunks) + b"0" + draw(EXTENSIONS) + b"\r\n" + draw(TRAILERS) + b"\r\n"


@st.composite
def whole(draw: st.DrawFn) -> Script:
    """An answer that has an end, in any segments, and what a connection may do after it."""
    status, body, headers = draw(_statuses), draw(_bodies), draw(_headers)
    framing = draw(st.sampled_from(["length", "chunks", "close"]))
    version = draw(st.sampled_from([b"1.1", b"1.1", b"1.0"])) if framing != "chunks" else b"1.1"
    sent = b"" if status in {204, 304} else body
    if draw(st.booleans()):
        headers.append((b"Content-Type", b"text/event-stream; charset=utf-8"))
    if framing == "length":
        headers.append((b"Content-Length", b"%d" % len(body)))
    elif framing == "chunks":
        headers.append((b"Transfer-Encoding", b"chunked"))
        sent = sent and _in_chunks(draw, body)
        if status not in {204, 304}:
            sent = sent or b"0\r\n\r\n"
    connection = draw(st.sampled_from([b"", b"", b"close", b"keep-alive", b"Set-Cookie, keep-alive"]))
    if connection:
        headers.append((b"Connection", connection))
    lines = b"".join(b"%b: %b\r\n" % header for header in draw(st.permutations(headers)))
    interim = b"".join(draw(st.lists(INTERIMS, max_size=2))) if version == b"1.1" else b""
    reason = draw(st.sampled_from([b"", b" OK", b" Not Quite"]))
    wire = interim + b"HTTP/%b %d%b\r\n" % (version, status, reason or b" ") + lines + b"\r\n" + sent
    until_close = framing == "close" and status not in {204, 304}
    then = draw(st.sampled_from(["end"] if until_close else ["keep", "keep", "end", "reset"]))
    after = b"" if until_close else draw(st.sampled_from([b"", b"", b"\r\n", b"HTTP/1.1 200 OK\r\n\r\n", b"x" * 99]))
    return Script(wire + after, draw(_cuts(len(wire))), then)


def _cuts(length: int) -> st.SearchStrategy[tuple[int, ...]]:
    every = tuple(range(length)) if length < 500 else ()
    return st.lists(st.integers(0, length), max_size=9).map(lambda cuts: tuple(sorted(cuts))) | st.just(every)


@st.composite
def cut_off(draw: st.DrawFn) -> Script:
    """An answer whose connection ends somewhere before its end, perhaps."""
    script = draw(whole())
    end = len(script.wire) - draw(st.integers(0, 40) | st.integers(0, len(script.wire)))
    return Script(script.wire[: max(0, end)], script.cuts, draw(st.sampled_from(["end", "reset"])))


@st.composite
def nonsense(draw: st.DrawFn) -> Script:
    """An answer that somebody damaged, or that never was one, before the connection ended."""
    wire = draw(whole()).wire if draw(st.booleans()) else draw(st.binary(max_size=60))
    for _ in range(draw(st.integers(0, 2))):
        at = draw(st.integers(0, min(len(wire), 400)))
        wire = wire[:at] + draw(st.binary(max_size=3) | st.sampled_from(STRANGE)) + wire[at + draw(st.integers(0, 3)) :]
    return Script(wire, draw(_cuts(len(wire))), draw(st.sampled_from(["end", "reset"])))


STRANGE: Iterable[bytes] = (
    b"\r\nContent-Length: 7", b"\r\nContent-Length: -1", b"\r\nTransfer-Encoding: chunked", b"\r\n folded",
    b"HTTP/1.1 999 Odd\r\n\r\n", b"HTTP/1.1 101 Odd\r\n\r\n", b"HTTP/1.1 099 Odd\r\n\r\n", b"HTTP/2.0 200 \r\n\r\n",
    b"fffffffffffffffff\r\n", b"\r\nX\x00: y", b"\r\nX: \x01", b"\r\n: nameless", b"\x00", b"\n", b"\r",
)  # fmt: skip
