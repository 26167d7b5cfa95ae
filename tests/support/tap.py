"""A listener in front of an engine that carries every byte on, both ways, and remembers it."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import io
from collections.abc import AsyncIterator
from typing import Any, cast
from urllib.parse import urlsplit


class Exchange:
    """What went over one connection."""

    def __init__(self) -> None:
        self.sent = bytearray()
        self.came = bytearray()

    @property
    def request_body(self) -> bytes:
        """The body of the only request."""
        return bytes(self.sent.partition(b"\r\n\r\n")[2])

    def answer(self) -> tuple[int, bytes]:
        """Status and body of the only answer, as Python's own client reads them."""
        answer = http.client.HTTPResponse(cast(Any, _Heard(bytes(self.came))))
        answer.begin()
        return answer.status, answer.read()


class Tap:
    """Where it listens, and the exchanges so far."""

    def __init__(self, url: str) -> None:
        self.url = ""
        self.exchanges: list[Exchange] = []
        self._engine = urlsplit(url)
        self._tasks: set[asyncio.Task[None]] = set()

    @classmethod
    @contextlib.asynccontextmanager
    async def before(cls, url: str) -> AsyncIterator[Tap]:
        """A tap in front of an engine; everything is closed at the end."""
        tap = cls(url)
        server = await asyncio.start_server(tap._accept, "127.0.0.1", 0)
        tap.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        try:
            yield tap
        finally:
            server.close()
            for task in tap._tasks:
                task.cancel()
            await asyncio.gather(*tap._tasks, return_exceptions=True)
            await server.wait_closed()

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(self._carry(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        from_engine, to_engine = await asyncio.open_connection(self._engine.hostname, self._engine.port)
        exchange = Exchange()
        self.exchanges.append(exchange)
        try:
            ways = (_pass_on(reader, to_engine, exchange.sent), _pass_on(from_engine, writer, exchange.came))
            _, left = await asyncio.wait([asyncio.create_task(way) for way in ways], return_when="FIRST_COMPLETED")
            for way in left:
                way.cancel()
        finally:
            writer.close()
            to_engine.close()


async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, kept: bytearray) -> None:
    with contextlib.suppress(ConnectionError):
        while data := await reader.read(65536):
            kept += data
            writer.write(data)
            await writer.drain()


class _Heard:
    """A socket from which these bytes come."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def makefile(self, mode: str) -> io.BytesIO:
        assert mode == "rb"
        return io.BytesIO(self._data)
