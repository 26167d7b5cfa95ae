"""Tenants for tests of a gateway: with the official client, and with a socket where every byte matters."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from typing import Any

import openai
from support.config import key_of, pool_config
from support.gateway import RunningGateway
from support.scripted_endpoint import PATIENCE, ScriptedEndpoint

from fairpool_gateway.config import PoolConfig

CHAT = "/v1/chat/completions"
QUESTION: dict[str, Any] = {"model": "sim", "messages": [{"role": "user", "content": "hello"}], "max_tokens": 3}


def pool_over(*endpoints: str | ScriptedEndpoint, **fields: Any) -> PoolConfig:
    """A pool of tenants `a`, `b` and `c` over these endpoints, by their URLs or scripted."""
    urls = [each if isinstance(each, str) else f"http://{each.target}" for each in endpoints]
    fields = {"tenants": [{"name": name} for name in "abc"], "models": ["sim"], **fields}
    return pool_config(endpoints=[{"name": f"e{number}", "url": url} for number, url in enumerate(urls)], **fields)


@contextlib.asynccontextmanager
async def tenant(gateway: RunningGateway, name: str = "a", **options: Any) -> AsyncIterator[openai.AsyncOpenAI]:
    """The official client as a tenant uses it, but that it never retries."""
    options = {"api_key": key_of(name), "max_retries": 0, "timeout": PATIENCE, **options}
    async with openai.AsyncOpenAI(base_url=f"{gateway.url}/v1", **options) as client:
        yield client


def request_bytes(
    body: bytes | None = None, *headers: bytes, target: str = CHAT, name: str | None = "a", framing: bytes | None = None
) -> bytes:
    """One POST as it goes over the wire, with a length unless another framing is given."""
    body = json.dumps(QUESTION).encode() if body is None else body
    framing = b"Content-Length: %d" % len(body) if framing is None else framing
    credential = [] if name is None else [b"Authorization: Bearer " + key_of(name).encode()]
    lines = [b"POST %b HTTP/1.1" % target.encode(), b"Host: pool", *credential, framing, *headers, b"", body]
    return b"\r\n".join(lines)


class Wire:
    """A tenant's connection: sends and reads bytes as it is told, and leaves as it is told."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def send(self, data: bytes) -> None:
        """Write, and wait for as long as the gateway is slow."""
        self._writer.write(data)
        await self._writer.drain()

    async def until(self, end: bytes) -> bytes:
        """What comes up to and with `end`."""
        async with asyncio.timeout(PATIENCE):
            return await self._reader.readuntil(end)

    async def some(self) -> bytes:
        """What comes next; nothing at the end, however the gateway closes the connection."""
        async with asyncio.timeout(PATIENCE):
            with contextlib.suppress(ConnectionError):
                return await self._reader.read(65536)
        return b""

    async def exactly(self, size: int) -> bytes:
        """So many bytes."""
        async with asyncio.timeout(PATIENCE):
            return await self._reader.readexactly(size)

    async def head(self) -> tuple[int, list[tuple[bytes, bytes]]]:
        """Status and headers of an answer; the names in lower case."""
        lines = (await self.until(b"\r\n\r\n")).split(b"\r\n")
        headers = [line.split(b": ", 1) for line in lines[1:-2]]
        return int(lines[0].split()[1]), [(name.lower(), value) for name, value in headers]

    async def answer(self) -> tuple[int, list[tuple[bytes, bytes]], bytes]:
        """A whole answer that has a length: status, headers, body."""
        status, headers = await self.head()
        return status, headers, await self.exactly(int(dict(headers)[b"content-length"]))

    async def rest(self) -> bytes:
        """All that comes until the gateway closes the connection, however it does."""
        data = b""
        async with asyncio.timeout(PATIENCE):
            with contextlib.suppress(ConnectionError):
                while piece := await self._reader.read(65536):
                    data += piece
        return data

    def end_sending(self) -> None:
        """Close this direction only."""
        self._writer.write_eof()

    def leave(self) -> None:
        """Close without reading what may still come."""
        self._writer.transport.abort()


@contextlib.asynccontextmanager
async def wire(gateway: RunningGateway, port: int | None = None) -> AsyncIterator[Wire]:
    """A connection to the tenants' port, or to another one."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port or gateway.port)
    try:
        yield Wire(reader, writer)
    finally:
        writer.transport.abort()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()
