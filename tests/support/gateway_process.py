"""The gateway as a process of its own, as people start it, with what it says."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from support.scripted_endpoint import PATIENCE

START = 60.0
"""Seconds that a start may take: on a busy machine loading the code alone takes ten."""


class GatewayProcess:
    """A running process. `said` holds the lines of its log so far."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        assert process.stderr is not None
        self.process = process
        self.said: list[str] = []
        self.url = self.admin_url = ""
        self._lines = process.stderr
        self._more = asyncio.Event()
        self._reading = asyncio.create_task(self._read())

    async def says(self, pattern: str, within: float = PATIENCE) -> re.Match[str]:
        """Wait for a line of the log in which this is found."""
        async with asyncio.timeout(within):
            while True:
                for line in self.said:
                    if found := re.search(pattern, line):
                        return found
                assert not self._reading.done(), f"it ended without saying {pattern!r}, but {self.said}"
                self._more.clear()
                await self._more.wait()

    async def listens(self) -> None:
        """Wait until it serves tenants."""
        listening = await self.says(r"to tenants on (\S+), admin on (\S+)", START)
        self.url, self.admin_url = listening.groups()

    def signal(self, number: int) -> None:
        """Send it a signal."""
        self.process.send_signal(number)

    async def ended(self) -> int:
        """Wait for its end; returns its exit status."""
        async with asyncio.timeout(PATIENCE):
            status = await self.process.wait()
            await self._reading
        return status

    async def _read(self) -> None:
        while line := await self._lines.readline():
            self.said.append(line.decode().rstrip("\n"))
            self._more.set()
        self._more.set()


@asynccontextmanager
async def gateway_process(config: Path, *arguments: str) -> AsyncIterator[GatewayProcess]:
    """Start it with a file, on ports that the kernel chooses; yields once it listens, and leaves nothing behind."""
    async with started_gateway("--config", str(config), *arguments) as running:
        await running.listens()
        yield running


@asynccontextmanager
async def started_gateway(*arguments: str) -> AsyncIterator[GatewayProcess]:
    """The same, with any arguments and as soon as it was started."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "fairpool_gateway", "--port", "0", "--admin-port", "0"),
        *arguments,
        stderr=asyncio.subprocess.PIPE,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    running = GatewayProcess(process)
    try:
        yield running
    finally:
        if process.returncode is None:
            running.signal(signal.SIGKILL)
        await running.ended()
