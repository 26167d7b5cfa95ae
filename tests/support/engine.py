"""Simulated engines for tests: in this process, where a test can wait for their state, or in one of their own."""

import asyncio
import re
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from fairpool_lab.engine.batching import Limits
from fairpool_lab.engine.faults import Fault
from fairpool_lab.engine.server import Engine
from fairpool_lab.engine.settings import EngineSettings
from fairpool_lab.engine.tokens import Language

FAST = Limits(step_base=0.000_5, step_per_sequence=0.000_01, prefill_tokens_per_second=1_000_000)
"""About two thousand steps a second: for tests that are not about time."""


@asynccontextmanager
async def running_engine(
    *models: str,
    host: str = "127.0.0.1",
    port: int = 0,
    limits: Limits = FAST,
    language: Language | None = None,
    speed: float = 1.0,
    tokens_per_event: int = 1,
    max_num_queued_reqs: int | None = None,
    api_key: str | None = None,
    keep_alive: int = 5,
    fault: str | None = None,
) -> AsyncIterator[Engine]:
    """An engine in this process, on a port that the kernel chose unless told; its connections end with it.

    `await engine.until(lambda e: e.running == 2)` waits for a state; `engine.tokens()`, `engine.set_fault(...)` and
    `engine.drop_connections()` see and do what `/debug` and a crash would.
    """
    engine = Engine(
        EngineSettings(
            models=models or ("sim",),
            host=host,
            port=port,
            limits=limits,
            language=language or Language(),
            speed=speed,
            tokens_per_event=tokens_per_event,
            max_num_queued_reqs=max_num_queued_reqs,
            api_key=api_key,
            keep_alive=keep_alive,
            fault=None if fault is None else Fault.parse(fault),
        )
    )
    await engine.start()
    try:
        yield engine
    finally:
        await engine.stop()


@dataclass(frozen=True)
class EngineProcess:
    """An engine in a process of its own. `die` kills it as the kernel would; `end` asks it to end."""

    url: str
    process: asyncio.subprocess.Process

    async def die(self) -> None:
        """SIGKILL."""
        self.process.kill()
        await self.process.wait()

    async def end(self) -> int:
        """SIGTERM; returns its exit status."""
        self.process.send_signal(signal.SIGTERM)
        return await self.process.wait()


@asynccontextmanager
async def engine_process(*arguments: str) -> AsyncIterator[EngineProcess]:
    """An engine started from the command line, with further arguments; gone at the end whatever happens."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "fairpool_lab.engine", "--port", "0", *arguments, stdout=asyncio.subprocess.PIPE
    )
    try:
        assert process.stdout is not None
        line = (await process.stdout.readline()).decode()
        listening = re.fullmatch(r"engine listening on (http://\S+)\n", line)
        assert listening, f"unexpected first line {line!r}"
        yield EngineProcess(listening[1], process)
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()
