"""`fairpool up` while something fails again and again, in other words each time: told once, and nothing else waits."""

from __future__ import annotations

import sys

import pytest
from support.up import pool, weight, write
from support.up_session import until

from fairpool_lab.errors import OutputInvalid
from fairpool_lab.up import pool as pools
from fairpool_lab.up import programs

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


async def test_a_failure_is_told_once_and_each_try_is_of_the_same_engine(place, tries):
    async with place.session() as said:
        write(place.files / "all.yaml", pool(models=["large"]), weight("search"), weight("batch"))
        await until(lambda: len(tries.logs) > 5)
        [told] = (line for line in said if "cannot be done yet" in line)
        assert "simulated engine 1 of default/llama ended with status 3" in told
        assert "I am" in told
        assert set(tries.logs) == {"engine-1.log"}


async def test_an_edit_is_taken_while_each_try_is_news(place, tries):
    tries.are_news = True
    async with place.session() as said:
        write(place.files / "all.yaml", pool(models=["large"]), weight("search"), weight("batch"))
        await until(lambda: sum("cannot be done yet" in line for line in said) > 2)
        write(place.files / "all.yaml", pool(models=["large"]), weight("search"))
        await until(lambda: '"batch"' not in place.config())
