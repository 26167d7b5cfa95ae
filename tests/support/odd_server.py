"""A small HTTP server that answers as it is told to, request by request: late, broken, cut, or well."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field

OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"


@dataclass
class Asked:
    """One request, how many were before it, and what it may do with its connection."""

    number: int
    headers: dict[str, str]
    body: bytes
    writer: asyncio.StreamWriter = field(repr=False)


Answer = Callable[[Asked], Awaitable[bytes | None]]
"""The bytes that go out; None cuts the connection."""


@dataclass
class OddServer:
    """What it was asked, in the order of arrival."""

    port: int = 0
    asked: list[Asked] = field(default_factory=list)
    connections: int = 0
    peers: set[str] = field(default_factory=set)


@contextlib.asynccontextmanager
async def odd_server(answer: Answer) -> AsyncIterator[OddServer]:
    """Serve on a port that the kernel chose."""
    server, serving = OddServer(), set[asyncio.Task[None] | None]()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        server.connections += 1
        server.peers.add(writer.get_extra_info("peername")[0])
        serving.add(asyncio.current_task())
        try:
            await exchange(reader, writer)
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass
        finally:
            writer.close()

    async def exchange(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            headers = {
                name.lower(): value for name, _, value in (line.partition(": ") for line in head.splitlines()[1:])
            }
            body = await reader.readexactly(int(headers["content-length"]))
            server.asked.append(asked := Asked(len(server.asked), headers, body, writer))
            if (said := await answer(asked)) is None:
                break
            writer.write(said)
            await writer.drain()
            if b"connection: close" in said or headers.get("connection") == "close":
                break

    listening = await asyncio.start_server(serve, "127.0.0.1", 0, backlog=1024)
    server.port = listening.sockets[0].getsockname()[1]
    try:
        yield server
    finally:
        listening.close()
        for task in serving:
            task.cancel()
        await asyncio.gather(*serving)
