"""llama.cpp's server as a process: a real engine, on a port that the kernel chose."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import re
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import httpx
from support.cluster.process import PATIENCE, Server
from support.llama.build import cached

MODEL: Final = "tiny"
"""What it calls its model."""

_number = itertools.count()


class LlamaServer:
    """A running server, the figures it shows of itself, and what it says.

    Looking at the figures wakes the server, which may keep it from noticing that a client left; its log does not.
    """

    def __init__(self, process: Server) -> None:
        self.url = ""
        self._process = process

    def kill(self) -> None:
        """End it as a crash does."""
        self._process.kill()

    def ask_to_end(self) -> None:
        """SIGTERM; how it obeys is for the test to see."""
        os.kill(self._process.pid, signal.SIGTERM)

    def said(self, pattern: str) -> list[str]:
        """What was found of this in its log so far."""
        return re.findall(pattern, self._process.log.read_text(encoding="utf-8", errors="replace"))

    async def says(self, pattern: str, *, times: int = 1) -> None:
        """Wait until this is found in its log so often."""
        async with asyncio.timeout(PATIENCE):
            while len(self.said(pattern)) < times:  # noqa: ASYNC110 - a file tells nobody that it grew
                await asyncio.sleep(0.01)

    async def running(self) -> int:
        """How many of its slots work."""
        slots: list[dict[str, Any]] = (await self._get("/slots")).json()
        return sum(slot["is_processing"] for slot in slots)

    async def metric(self, name: str) -> float:
        """One of its figures."""
        found = re.search(rf"^llamacpp:{name} (\S+)$", (await self._get("/metrics")).text, re.MULTILINE)
        assert found, name
        return float(found[1])

    def listens(self) -> bool:
        """Whether it has loaded its model and said where it listens."""
        if found := self.said(r"model loaded[\s\S]*listening on (http://\S+)\n"):
            self.url = found[0]
        return bool(found)

    async def _get(self, path: str) -> httpx.Response:
        async with httpx.AsyncClient(base_url=self.url, timeout=PATIENCE) as client:
            return (await client.get(path)).raise_for_status()


@contextlib.contextmanager
def llama_server(model: Path, directory: Path, *arguments: str, slots: int = 2) -> Iterator[LlamaServer]:
    """Serve a model, with so many of the server's own slots; gone at the end whatever happens.

    It computes in one thread: several would wait for each other by spinning, and take a busy machine from all others.
    """
    command = (
        *(str(cached()), "--model", str(model), "--alias", MODEL, "--host", "127.0.0.1", "--port", "0"),
        *("--parallel", str(slots), "--ctx-size", str(slots * 16_384), "--threads", "1", "--threads-batch", "1"),
        *("--metrics", "--slots", "--no-ui"),
        *arguments,
    )
    with llama_process(command, directory) as server:
        yield server


@contextlib.contextmanager
def llama_process(command: tuple[str, ...], directory: Path) -> Iterator[LlamaServer]:
    """The same, started by any command."""
    process = Server(f"llama-server-{next(_number)}", command, directory)
    server = LlamaServer(process)
    process.start()
    try:
        process.until(server.listens)
        yield server
    finally:
        process.kill()
