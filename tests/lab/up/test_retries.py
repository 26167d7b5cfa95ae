"""`fairpool up` while something fails again and again, in other words each time: told once, and nothing else waits."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from pathlib import Path

import pytest
from support.up import START, eventually, pool, secret, weight, write

from fairpool_lab.errors import OutputInvalid
from fairpool_lab.up import pool as pools
from fairpool_lab.up import programs
from fairpool_lab.up.endpoints import Given
from fairpool_lab.up.programs import LOOPBACK, Ports
from fairpool_lab.up.session import Options, Session

KEYS = secret(search="key-of-search-51c0", batch="key-of-batch-9f27")
FAILS = "import os; print('I am', os.getpid()); raise SystemExit(3)"
"""A program that says something else each time."""


class Tries:
    """The attempts to start engines; those of one model fail."""

    def __init__(self, real) -> None:
        self.logs: list[str] = []
        self.are_news = False
        self._real = real

    def engine(self, name, models, output, *arguments, heard=None):
        engine = self._real(name, models, output, *arguments, heard=heard)
        if "large" not in models:
            return engine
        self.logs.append(output.name)
        if self.are_news:
            raise OutputInvalid(f"failure {len(self.logs)}")
        return programs.Program(name, [sys.executable, "-c", FAILS], engine.announces, output)


@pytest.fixture
def tries(monkeypatch) -> Tries:
    tries = Tries(programs.engine)
    monkeypatch.setattr(programs, "engine", tries.engine)
    monkeypatch.setattr(pools, "_AGAIN_SECONDS", 0.01)
    monkeypatch.setattr(pools, "_AGAIN_SECONDS_AT_MOST", 0.01)
    return tries


@pytest.fixture
def places(tmp_path) -> tuple[Path, Path]:
    """Where the files are, and where the session has its own."""
    (tmp_path / "files").mkdir()
    return tmp_path / "files", tmp_path / "state"


@contextlib.asynccontextmanager
async def session(files: Path, state: Path):
    """One that runs here, of a pool with two tenants; yields what it says."""
    said: list[str] = []
    write(files / "keys.yaml", KEYS)
    write(files / "all.yaml", pool(), weight("search"), weight("batch"))
    given, ports = Given((), 1), Ports(LOOPBACK, 0, 0)
    running = asyncio.create_task(Session(Options((files,), given, ports, "default", state, 0), said.append).run())
    try:
        await until(lambda: any("Ctrl-C ends everything" in line for line in said))
        yield said
    finally:
        running.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await running


async def until(condition) -> None:
    await asyncio.to_thread(eventually, condition, START)


async def test_a_failure_is_told_once_and_each_try_is_of_the_same_engine(places, tries):
    files, state = places
    async with session(files, state) as said:
        write(files / "all.yaml", pool(models=["large"]), weight("search"), weight("batch"))
        await until(lambda: len(tries.logs) > 5)
        [told] = (line for line in said if "cannot be done yet" in line)
        assert "simulated engine 1 of default/llama ended with status 3" in told
        assert "I am" in told
        assert set(tries.logs) == {"engine-1.log"}


async def test_an_edit_is_taken_while_each_try_is_news(places, tries):
    files, state = places
    tries.are_news = True
    async with session(files, state) as said:
        write(files / "all.yaml", pool(models=["large"]), weight("search"), weight("batch"))
        await until(lambda: sum("cannot be done yet" in line for line in said) > 2)
        write(files / "all.yaml", pool(models=["large"]), weight("search"))
        config = state / "default.llama" / "pool.json"
        await until(lambda: '"batch"' not in config.read_text())
