"""An endpoint whose every byte the test decides: it accepts, reads and writes only as told."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
import struct
from collections.abc import AsyncIterator, Callable, Iterator

from fairpool_gateway.upstream import Target, Tls

PATIENCE = 10.0
"""Seconds after which a test that waits is taken to have failed."""


class Peer:
    """One connection, as the endpoint sees it."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    @property
    def tls(self) -> ssl.SSLObject:
        """What was agreed on, over TLS."""
        agreed: ssl.SSLObject = self._writer.get_extra_info("ssl_object")
        return agreed

    async def request(self) -> tuple[bytes, bytes]:
        """The head and, by its Content-Length, the body of the next request."""
        async with asyncio.timeout(PATIENCE):
            head = await self._reader.readuntil(b"\r\n\r\n")
            length = 0
            for line in head.lower().split(b"\r\n"):
                if line.startswith(b"content-length:"):
                    length = int(line.partition(b":")[2])
            return head, await self._reader.readexactly(length)

    async def receive(self, size: int) -> bytes:
        """So many bytes, whatever they are."""
        async with asyncio.timeout(PATIENCE):
            return await self._reader.readexactly(size)

    async def send(self, data: bytes) -> None:
        """Write, and wait for as long as the other side is slow."""
        self._writer.write(data)
        await self._writer.drain()

    async def answer(self, body: bytes = b"ok", *, headers: bytes = b"") -> None:
        """A plain answer with a length."""
        await self.send(b"HTTP/1.1 200 OK\r\n%bContent-Length: %d\r\n\r\n%b" % (headers, len(body), body))

    async def gone(self) -> int:
        """Wait until the other side has closed the connection, however it did; says how many bytes came before."""
        size = 0
        async with asyncio.timeout(PATIENCE):
            with contextlib.suppress(ConnectionError):
                while data := await self._reader.read(65536):
                    size += len(data)
        return size

    def end(self) -> None:
        """Close in good order."""
        self._writer.close()

    def end_sending(self) -> None:
        """Close this direction only."""
        self._writer.write_eof()

    def reset(self) -> None:
        """Cut the connection, so that the other side gets an error."""
        sock = self._writer.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._writer.transport.abort()

    async def aclose(self) -> None:
        """Free what it holds, whatever state it is in."""
        self._writer.transport.abort()
        with contextlib.suppress(ConnectionError):
            await self._writer.wait_closed()


class ScriptedEndpoint:
    """Listens on loopback and hands each connection to the test."""

    def __init__(self) -> None:
        self.target: Target
        self.listener: asyncio.Server
        self.accepted = 0
        self._peers: asyncio.Queue[Peer] = asyncio.Queue()
        self._all: list[Peer] = []

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        peer = Peer(reader, writer)
        self.accepted += 1
        self._all.append(peer)
        self._peers.put_nowait(peer)

    async def accept(self) -> Peer:
        """The next connection."""
        async with asyncio.timeout(PATIENCE):
            return await self._peers.get()

    @classmethod
    @contextlib.asynccontextmanager
    async def listening(
        cls, context: ssl.SSLContext | None = None, tls: Tls | None = None
    ) -> AsyncIterator[ScriptedEndpoint]:
        """An endpoint on a port that the kernel chose; at the end everything is closed.

        With a `context` it listens for TLS; `tls` is how its target says that it proves itself.
        """
        endpoint = cls()
        server = endpoint.listener = await asyncio.start_server(endpoint._accept, "127.0.0.1", 0, ssl=context)
        endpoint.target = Target("127.0.0.1", server.sockets[0].getsockname()[1], tls)
        try:
            yield endpoint
        finally:
            server.close()
            for peer in endpoint._all:
                await peer.aclose()
            await server.wait_closed()


@contextlib.contextmanager
def deaf_port() -> Iterator[Target]:
    """A port at which a connection is neither accepted nor refused: its queue of two is full."""
    with contextlib.ExitStack() as stack:
        listener = stack.enter_context(socket.socket())
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        for _ in range(4):
            filler = stack.enter_context(socket.socket())
            filler.setblocking(False)
            filler.connect_ex(listener.getsockname())
        yield Target("127.0.0.1", listener.getsockname()[1])


def refusing_port() -> Target:
    """A port at which nobody listens."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return Target("127.0.0.1", free.getsockname()[1])


async def until(condition: Callable[[], object]) -> None:
    """Let the loop run until the condition holds."""
    async with asyncio.timeout(PATIENCE):
        while not condition():  # noqa: ASYNC110 - the code under test sets no event for it
            await asyncio.sleep(0.001)
