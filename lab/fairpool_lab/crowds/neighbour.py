"""The neighbour of a crowd: a tenant that asks one small question after the other, and notes how each was answered.

Runs as a process of its own, so that what it sees is the gateway's doing and not that of whoever drives the crowd. Each
line that it prints is one answer: when it was asked for (on the clock that all processes share), how long it took, and
its status, 0 where there was none. It has a connection from the start, and makes a new one for every eighth question,
so that it sees what old and new connections get.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

SAYS: Final = "neighbour asks"

PAUSE: Final = 0.01
"""Seconds between an answer and the next question."""

_PATIENCE: Final = 30.0
_BODY: Final = json.dumps({"model": "sim", "messages": [{"role": "user", "content": "hello"}], "max_tokens": 3})


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer, as the neighbour saw it."""

    asked: float
    seconds: float
    status: int
    fresh: bool


def read(path: Path) -> list[Answer]:
    """The answers in what a neighbour has printed so far."""
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    return [Answer(*json.loads(line)) for line in lines if line.startswith("[") and line.endswith("]\n")]


class _Line:
    """A connection, made when it is needed."""

    def __init__(self, port: int, request: bytes) -> None:
        self._port = port
        self._request = request
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def ask(self) -> int:
        """Ask once; returns the status, or 0."""
        try:
            async with asyncio.timeout(_PATIENCE):
                return await self._exchange()
        except (OSError, EOFError, asyncio.IncompleteReadError):
            self.close()
            return 0

    def close(self) -> None:
        """Let go of the connection."""
        if self._streams is not None:
            self._streams[1].transport.abort()
            self._streams = None

    async def _exchange(self) -> int:
        if self._streams is None:
            self._streams = await asyncio.open_connection("127.0.0.1", self._port)
        reader, writer = self._streams
        writer.write(self._request)
        head = (await reader.readuntil(b"\r\n\r\n")).lower()
        await reader.readexactly(int(head.partition(b"content-length:")[2].split(b"\r", 1)[0]))
        return int(head.split(b" ", 2)[1])


async def _ask(port: int, key: str) -> None:
    head = f"POST /v1/chat/completions HTTP/1.1\r\nhost: pool\r\nauthorization: Bearer {key}\r\n"
    request = f"{head}content-length: {len(_BODY)}\r\n\r\n{_BODY}".encode()
    old, new = _Line(port, request), _Line(port, request)
    sys.stdout.write(f"{SAYS}\n")
    number = 0
    while True:
        number += 1
        fresh = not number % 8
        asked = time.monotonic()
        status = await (new if fresh else old).ask()
        new.close()
        sys.stdout.write(json.dumps([asked, time.monotonic() - asked, status, fresh]) + "\n")
        sys.stdout.flush()
        await asyncio.sleep(PAUSE)


if __name__ == "__main__":
    asyncio.run(_ask(int(sys.argv[1]), sys.argv[2]))
