"""The endpoint behind a crowd: answers as each request says in its headers, and costs next to nothing itself.

x-answer-after: SECONDS   how long it works before it answers
x-answer-bytes: NUMBER    how long the answer is, at least; JSON with usage unless it is this long
x-answer-events: NUMBER   instead, a stream of so many events of 1 KiB
"""

from __future__ import annotations

import asyncio
import json
import socket
import sys
from typing import Any, Final

import httptools
import uvloop

SAYS: Final = "endpoint listens on "

_PIECE: Final = 1 << 16
_USAGE: Final = {"prompt_tokens": 10, "completion_tokens": 10, "total_tokens": 20}
_JSON: Final = json.dumps({"object": "chat.completion", "model": "sim", "choices": [], "usage": _USAGE}).encode()
_DELTA: Final = {"object": "chat.completion.chunk", "model": "sim", "choices": [{"delta": {"content": "x" * 900}}]}
_EVENT: Final = b"data: " + json.dumps(_DELTA).encode() + b"\n\n"
_END: Final = b"data: [DONE]\n\n"


class _Answering(asyncio.Protocol):
    """One connection from the gateway, with one request at a time."""

    def __init__(self) -> None:
        self._parser = httptools.HttpRequestParser(self)
        self._headers: dict[bytes, bytes] = {}
        self._task: asyncio.Task[None] | None = None
        self._writable = asyncio.Event()
        self._writable.set()

    def connection_made(self, transport: Any) -> None:
        self._transport: asyncio.Transport = transport
        # Both ends of a thousand connections are on one machine here: the kernel must not hold megabytes for each.
        transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _PIECE)

    def connection_lost(self, _exc: Exception | None) -> None:
        self._writable.set()
        if self._task is not None:
            self._task.cancel()

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def pause_writing(self) -> None:
        self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()

    def on_message_begin(self) -> None:
        """httptools: a request begins."""
        self._headers = {}

    def on_header(self, name: bytes, value: bytes) -> None:
        """httptools: one header."""
        self._headers[name.lower()] = value

    def on_message_complete(self) -> None:
        """httptools: the body has come."""
        self._task = asyncio.get_running_loop().create_task(self._answer(self._headers))

    async def _answer(self, headers: dict[bytes, bytes]) -> None:
        if after := headers.get(b"x-answer-after"):
            await asyncio.sleep(float(after))
        if events := headers.get(b"x-answer-events"):
            length, sent = int(events) * len(_EVENT) + len(_END), 0
            self._begin(b"text/event-stream", length)
            for _ in range(int(events)):
                self._transport.write(_EVENT)
                await self._writable.wait()
            self._transport.write(_END)
            return
        length = max(int(headers.get(b"x-answer-bytes", b"0")), len(_JSON))
        self._begin(b"application/json", length)
        self._transport.write(_JSON)
        sent = len(_JSON)
        while sent < length:
            await self._writable.wait()
            piece = b" " * min(_PIECE, length - sent)
            self._transport.write(piece)
            sent += len(piece)

    def _begin(self, content_type: bytes, length: int) -> None:
        head = b"HTTP/1.1 200 OK\r\ncontent-type: %b\r\ncontent-length: %d\r\n\r\n"
        self._transport.write(head % (content_type, length))


async def _serve() -> None:
    server = await asyncio.get_running_loop().create_server(_Answering, "127.0.0.1", 0, backlog=4096)
    sys.stdout.write(f"{SAYS}http://127.0.0.1:{server.sockets[0].getsockname()[1]}\n")
    sys.stdout.flush()
    await server.serve_forever()


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_serve())
