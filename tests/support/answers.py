"""Answers of an endpoint as bytes, with what a reader must make of them, and ways to cut them into segments."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import pairwise

from hypothesis import strategies as st

from fairpool_gateway.errors import UpstreamBroken
from fairpool_gateway.upstream.message import Message


@dataclass(frozen=True)
class Answer:
    """What went over the wire, in which segments, and what it says."""

    segments: list[bytes]
    status: int
    reason: bytes
    headers: list[tuple[bytes, bytes]]
    body: bytes
    reusable: bool


def split(wire: bytes, cuts: Iterable[int]) -> list[bytes]:
    """The wire's bytes, cut at these places."""
    places = [0, *sorted(cuts), len(wire)]
    return [wire[a:b] for a, b in pairwise(places) if a < b]


TOKENS = st.sampled_from([b"Set-Cookie", b"set-cookie", b"Content-Type"]) | st.text(
    "abcXYZ019!#$%&'*+.^_`|~-", min_size=1, max_size=8
).map(lambda text: f"x-{text}".encode())
VALUES = st.binary(max_size=12).map(lambda raw: bytes(b for b in raw if b >= 0x20 and b != 0x7F).strip(b" "))
REASONS = st.sampled_from([b"", b"OK", b"Not Quite OK", b"Service Unavailable"])
HEADERS = st.lists(st.tuples(TOKENS, VALUES), max_size=5)
INTERIMS = st.sampled_from(
    [
        b"HTTP/1.1 100 Continue\r\n\r\n",
        b"HTTP/1.1 102 Processing\r\nX-Progress: 3\r\n\r\n",
        b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\nLink: </b>\r\n\r\n",
    ]
)
EXTENSIONS = st.sampled_from([b"", b";a", b";a=b", b';a="b c";d'])
TRAILERS = st.sampled_from([b"", b"X-Sum: 1\r\n", b"X-Sum: 1\r\nX-Sum: 2\r\n"])


@st.composite
def chunked(draw: st.DrawFn, body: bytes) -> bytes:
    """The body in chunks of any sizes, with extensions and trailers."""
    cuts = draw(st.lists(st.integers(0, len(body)), max_size=4))
    chunks = [b"%x%b\r\n%b\r\n" % (len(part), draw(EXTENSIONS), part) for part in split(body, cuts)]
    return b"".join(chunks) + b"0" + draw(EXTENSIONS) + b"\r\n" + draw(TRAILERS) + b"\r\n"


@st.composite
def answers(draw: st.DrawFn) -> Answer:
    """Any well-formed answer, in any segments."""
    framing = draw(st.sampled_from(["length", "chunked", "close", "none"]))
    status = draw(st.sampled_from([204, 304] if framing == "none" else [200, 201, 400, 429, 500, 503]))
    reason = draw(REASONS)
    body = b"" if framing == "none" else draw(st.binary(max_size=60))
    headers = draw(HEADERS)
    wire_body = body
    if framing == "length":
        headers.append((b"Content-Length", str(len(body)).encode()))
    elif framing == "chunked":
        headers.append((b"Transfer-Encoding", draw(st.sampled_from([b"chunked", b"Chunked", b"gzip, chunked"]))))
        wire_body = draw(chunked(body))
    closing = draw(st.booleans())
    if closing:
        headers.append((b"Connection", b"close"))
    headers = draw(st.permutations(headers))
    interims = b"".join(draw(st.lists(INTERIMS, max_size=2)))
    lines = b"".join(b"%b: %b\r\n" % header for header in headers)
    wire = interims + b"HTTP/1.1 %d %b\r\n" % (status, reason) + lines + b"\r\n" + wire_body
    cuts = draw(st.one_of(st.just(list(range(len(wire)))), st.lists(st.integers(0, len(wire)), max_size=12)))
    return Answer(
        segments=split(wire, cuts),
        status=status,
        reason=reason,
        headers=[(name.lower(), value) for name, value in headers],
        body=body,
        reusable=framing != "close" and not closing,
    )


def is_read_faithfully(answer: Answer, kind: Callable[..., Message] = Message) -> bool:
    """Whether the message says what the answer says, whichever segments its bytes came in."""
    message = kind(bodiless=False)
    body = b""
    try:
        for segment in answer.segments:
            message.feed(segment)
            body += message.take()
        message.feed_eof()
    except UpstreamBroken:
        return False
    seen = (message.status, message.reason, message.headers, body, message.complete, message.reusable)
    return seen == (answer.status, answer.reason, answer.headers, answer.body, True, answer.reusable)
