"""The members of a crowd: connections that send what they are told, and take as much as they are told.

A member keeps the beginning of what it was sent and counts the rest, so that thousands of them cost little here.
"""

from __future__ import annotations

import asyncio
import resource
import socket
from collections.abc import Callable, Coroutine
from typing import Any, Final, Self

from fairpool_lab.errors import MachineLacks

_KEPT: Final = 512
_AT_ONCE: Final = 200
_SPARE: Final = 256
_SMALL_BUFFER: Final = 4096


Words = Callable[[int], bytes]
"""What the member of that number says."""


class Member(asyncio.Protocol):
    """One connection.

    Attributes:
        said: the beginning of what came.
        size: how much came.
        lost: set once the connection is gone.
    """

    def __init__(self, *, reads: bool) -> None:
        self.said = b""
        self.size = 0
        self.lost = asyncio.Event()
        self._reads = reads
        self._writable = asyncio.Event()
        self._writable.set()

    @property
    def status(self) -> int:
        """The status of the first answer; 0 if there was none."""
        return int(self.said[9:12]) if self.said.startswith(b"HTTP/1.1 ") and len(self.said) >= 12 else 0

    def connection_made(self, transport: Any) -> None:
        """Connected."""
        self.transport: asyncio.Transport = transport
        if not self._reads:
            transport.pause_reading()

    def connection_lost(self, _exc: Exception | None) -> None:
        """The other side, or this one, has ended it."""
        self.lost.set()
        self._writable.set()

    def data_received(self, data: bytes) -> None:
        """Some of an answer."""
        self.said += data[: _KEPT - len(self.said)]
        self.size += len(data)

    def pause_writing(self) -> None:
        """The gateway takes no more for now."""
        self._writable.clear()

    def resume_writing(self) -> None:
        """It does again."""
        self._writable.set()

    async def send(self, data: bytes) -> None:
        """Send, no faster than it is taken; nothing once the connection is gone."""
        if not self.lost.is_set():
            self.transport.write(data)
        await self._writable.wait()

    def leave(self) -> None:
        """Cut the connection."""
        self.transport.abort()


class Crowd(list[Member]):
    """All members of one crowd; leaves at the end of its `async with`."""

    def __init__(self) -> None:
        super().__init__()
        self._tasks: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for member in self:
            member.leave()
        for member in self:
            await member.lost.wait()

    def keep(self, *doings: Coroutine[Any, Any, None]) -> None:
        """Have it go on like this until it leaves."""
        self._tasks.extend(asyncio.get_running_loop().create_task(doing) for doing in doings)

    def lost(self) -> int:
        """How many have lost their connections."""
        return sum(member.lost.is_set() for member in self)

    def statuses(self) -> dict[int, int]:
        """How many got which status first; 0 for none."""
        found: dict[int, int] = {}
        for member in self:
            found[member.status] = found.get(member.status, 0) + 1
        return found

    async def until_lost(self, number: int | None = None) -> None:
        """Wait until so many have lost their connections, all of them by default."""
        while self.lost() < (len(self) if number is None else number):  # noqa: ASYNC110 - thousands of events
            await asyncio.sleep(0.02)


async def connect(port: int, number: int, *, words: Words | None = None, reads: bool = True) -> Crowd:
    """So many connections to a port of this machine, each of which says its words as soon as it is there.

    Those that do not read have small buffers in the kernel too.
    """
    allow_descriptors(number)
    loop, crowd = asyncio.get_running_loop(), Crowd()
    at_once = asyncio.Semaphore(_AT_ONCE)

    async def join(place: int) -> None:
        async with at_once:
            connection = socket.socket()
            connection.setblocking(False)
            if not reads:
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _SMALL_BUFFER)
            try:
                await loop.sock_connect(connection, ("127.0.0.1", port))
                _, member = await loop.create_connection(lambda: Member(reads=reads), sock=connection)
            except OSError:
                connection.close()
                raise
            crowd.append(member)
            if words is not None:
                await member.send(words(place))

    try:
        await asyncio.gather(*(join(place) for place in range(number)))
    except BaseException:
        await crowd.__aexit__()
        raise
    return crowd


def allow_descriptors(number: int) -> None:
    """Have this process allowed to hold so many connections.

    Raises:
        MachineLacks: the system does not allow as many.
    """
    needed = number + _SPARE
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if needed > hard:
        raise MachineLacks(f"{needed} file descriptors are needed, and `ulimit -Hn` allows {hard}")
    if needed > soft:
        resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))
