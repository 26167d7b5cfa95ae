"""HTTP/1.1 as the C programs read it: the same bytes are the same message, in whatever pieces they come."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.load_programs import probed

names = st.from_regex(r"x-[a-z]{1,20}", fullmatch=True)
headers = st.lists(st.tuples(names, st.from_regex(r"[ -~]{0,400}", fullmatch=True).map(str.strip)), max_size=4)


def read(kind: str, message: bytes, piece: int = 1 << 16) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(probed(kind, str(piece), given=message))
    return found | {"body": bytes.fromhex(found["body"])}


@st.composite
def framed(draw: st.DrawFn) -> tuple[list[str], bytes, bytes]:
    """Headers that frame a body, the body, and the bytes that it is on the wire."""
    body = draw(st.binary(max_size=600))
    if draw(st.booleans()):
        name = draw(st.sampled_from(["Content-Length: {}", "content-length:{}", "CONTENT-LENGTH:   {}"]))
        return [name.format(len(body))], body, body
    pieces, rest = b"", body
    while rest:
        size = draw(st.integers(1, len(rest)))
        extension = draw(st.sampled_from([b"", b";name=value"]))
        pieces += b"%x%s\r\n%s\r\n" % (size, extension, rest[:size])
        rest = rest[size:]
    trailer = draw(st.sampled_from([b"", b"x-trailer: 1\r\n"]))
    return ["Transfer-Encoding: chunked"], body, pieces + b"0\r\n" + trailer + b"\r\n"


@settings(max_examples=40, deadline=None)
@given(framed(), headers, st.integers(1, 64), st.sampled_from([200, 404, 503]), st.binary(max_size=20))
def test_an_answer_is_read_whole_and_no_byte_beyond_it(framing, others, piece, status, beyond):
    lines = [f"HTTP/1.1 {status} Said", *(f"{name}: {value}" for name, value in others), *framing[0], "", ""]
    message = "\r\n".join(lines).encode() + framing[2]
    found = read("answer", message + beyond, piece)
    assert (found["part"], found["status"], found["body"]) == ("whole", status, framing[1])
    assert found["taken"] == len(message)


@settings(max_examples=40, deadline=None)
@given(
    framed(),
    st.integers(1, 64),
    st.from_regex(r"/[!-~]{0,100}", fullmatch=True).filter(lambda it: '"' not in it and "\\" not in it),
)
def test_so_is_a_request(framing, piece, target):
    message = "\r\n".join([f"POST {target} HTTP/1.1", *framing[0], "", ""]).encode() + framing[2]
    found = read("request", message, piece)
    assert (found["part"], found["target"], found["body"]) == ("whole", target, framing[1])


@settings(max_examples=40, deadline=None)
@given(st.binary(max_size=300), st.integers(1, 64), st.sampled_from(["answer", "request"]))
def test_whatever_comes_no_memory_is_touched_that_is_not_its_own(message, piece, kind):
    probed(kind, str(piece), given=message)


@pytest.mark.parametrize("piece", [1, 1000])
@pytest.mark.parametrize(
    ("message", "part", "body"),
    [
        (b"HTTP/1.1 200 OK\r\n\r\nall the rest", "until end", b"all the rest"),
        (b"HTTP/1.1 204 No Content\r\n\r\n", "whole", b""),
        (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok", "whole", b"ok"),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nok", "unfinished", b"ok"),
        (b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n", "unfinished", b"ok"),
        (b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nnot a size\r\n", "broken", b""),
        (b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nokmore\r\n", "broken", b"ok"),
        (b"SSH-2.0-OpenSSH\r\n", "broken", b""),
        (b"HTTP/1.1 2\r\n", "broken", b""),
        (b"HTTP/1.1 999 Odd\r\n", "broken", b""),
    ],
)
def test_what_is_odd_is_taken_for_what_it_is(message, part, body, piece):
    found = read("answer", message, piece)
    assert (found["part"], found["body"]) == (part, body)


def test_a_connection_that_is_to_end_is_known():
    answer = "HTTP/1.{} 200 OK\r\ncontent-length: 0\r\n{}\r\n"
    assert read("answer", answer.format(1, "").encode())["closes"] == 0
    assert read("answer", answer.format(1, "Connection: close\r\n").encode())["closes"] == 1
    assert read("answer", answer.format(0, "").encode())["closes"] == 1
    assert read("answer", answer.format(0, "connection: keep-alive\r\n").encode())["closes"] == 0
