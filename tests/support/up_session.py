"""A session of `fairpool up` in the test's own process, with one pool of two tenants, so that a test can hold it up."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path

from support.up import eventually, pool, secret, weight, write

from fairpool_lab.up.endpoints import Given
from fairpool_lab.up.programs import LOOPBACK, Ports
from fairpool_lab.up.session import Options, Session

KEYS = secret(search="key-of-search-51c0", batch="key-of-batch-9f27")


@dataclass(frozen=True)
class Place:
    """Where the files are, and where the session has its own."""

    files: Path
    state: Path

    def config(self, name: str = "llama") -> str:
        """What the gateway of a pool reads."""
        return (self.state / f"default.{name}" / "pool.json").read_text(encoding="utf-8")

    @contextlib.asynccontextmanager
    async def session(self) -> AsyncIterator[list[str]]:
        """One that runs; yields what it says."""
        said: list[str] = []
        write(self.files / "keys.yaml", KEYS)
        write(self.files / "all.yaml", pool(), weight("search"), weight("batch"))
        options = Options((self.files,), Given((), 1), Ports(LOOPBACK, 0, 0), "default", self.state, 0)
        running = asyncio.create_task(Session(options, said.append).run())
        try:
            await until(lambda: any("Ctrl-C ends everything" in line for line in said))
            yield said
        finally:
            running.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await running


async def until(condition: Callable[[], bool]) -> None:
    """Wait for what nothing tells of."""
    await asyncio.to_thread(eventually, condition)
