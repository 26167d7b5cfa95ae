"""A network between a client and the API server that a test can make stall, slow or break; it sees no content.

With a round trip of TLS inside, all it can do is what networks do. `LyingProxy` is for an API server that lies.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

_CHUNK = 16 * 1024


class TcpProxy:
    """Listens at `url`, and passes on what it gets until told otherwise."""

    def __init__(self, target: str) -> None:
        self._target = urlsplit(target)
        self._server: asyncio.Server | None = None
        self._passing = asyncio.Event()
        self._passing.set()
        self._refusing = False
        self._bytes_per_second: float | None = None
        self._ends: set[asyncio.StreamWriter] = set()
        self._pumps: set[asyncio.Task[None]] = set()
        self.accepted = 0

    @property
    def url(self) -> str:
        """Where clients are to connect."""
        assert self._server is not None
        port = self._server.sockets[0].getsockname()[1]
        return f"{self._target.scheme}://127.0.0.1:{port}"

    @property
    def connections(self) -> int:
        """How many are open."""
        return len(self._ends) // 2

    def stall(self) -> None:
        """Pass nothing on from now, in neither direction; connections stay, and new ones are accepted."""
        self._passing.clear()

    def slow(self, bytes_per_second: float) -> None:
        """Pass on only so much in each direction of each connection."""
        self._bytes_per_second = bytes_per_second

    def cut(self) -> None:
        """Reset the connections there are; new ones are passed on."""
        for end in list(self._ends):
            end.transport.abort()

    def refuse(self) -> None:
        """Reset the connections there are and whatever comes."""
        self._refusing = True
        self.cut()

    def resume(self) -> None:
        """Be a good network again; what was held up by `stall` arrives."""
        self._refusing = False
        self._bytes_per_second = None
        self._passing.set()

    async def start(self) -> None:
        """Listen on a port that the kernel chooses."""
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)

    async def stop(self) -> None:
        """Reset everything and listen no more."""
        assert self._server is not None
        self._server.close()
        self.cut()
        for pump in self._pumps:
            pump.cancel()
        if self._pumps:
            await asyncio.wait(self._pumps)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.accepted += 1
        if self._refusing:
            writer.transport.abort()
            return
        try:
            there = await asyncio.open_connection(self._target.hostname, self._target.port)
        except OSError:
            writer.transport.abort()
            return
        self._ends |= {writer, there[1]}
        for source, sink in ((reader, there[1]), (there[0], writer)):
            pump = asyncio.create_task(self._pump(source, sink, (writer, there[1])))
            self._pumps.add(pump)
            pump.add_done_callback(self._pumps.discard)

    async def _pump(
        self, source: asyncio.StreamReader, sink: asyncio.StreamWriter, ends: tuple[asyncio.StreamWriter, ...]
    ) -> None:
        """Carry one direction; the connection is over on both sides when one direction is."""
        try:
            with contextlib.suppress(OSError):
                while data := await source.read(_CHUNK):
                    if self._bytes_per_second is not None:
                        await asyncio.sleep(len(data) / self._bytes_per_second)
                    await self._passing.wait()
                    sink.write(data)
                    await sink.drain()
        finally:
            for end in ends:
                end.close()
                self._ends.discard(end)


@asynccontextmanager
async def tcp_proxy(target: str) -> AsyncIterator[TcpProxy]:
    """A proxy in front of that address, for the block."""
    proxy = TcpProxy(target)
    await proxy.start()
    try:
        yield proxy
    finally:
        await proxy.stop()
