"""Programs that `fairpool up` has started: when they end, and that they are forgotten then."""

from __future__ import annotations

import asyncio
import gc
import os
import re
import sys

import pytest
from support.processes import descendants
from support.up import START, pool, weight, write
from support.up_session import until

from fairpool_lab.processes import Program
from fairpool_lab.up import programs
from fairpool_lab.up.started import Started

SILENT = "import signal; signal.pause()"
ANNOUNCED = "import signal; print('engine listening on http://127.0.0.1:9', flush=True); signal.pause()"


@pytest.mark.parametrize("is_there", [False, True])
async def test_one_that_hangs_at_its_start_ends_as_soon_as_it_is_told(tmp_path, is_there):
    command = [sys.executable, "-c", SILENT]
    started = Started([Program("the child", command, re.compile("never"), tmp_path / "log", None, 3600.0)], pytest.fail)
    if is_there:
        await until(lambda: any(SILENT in each for each in descendants(os.getpid()).values()))
    async with asyncio.timeout(START):
        await started.end()
    assert started.have_ended
    assert descendants(os.getpid()) == {}


async def test_engines_that_have_ended_are_forgotten_however_often_models_are_edited(place, monkeypatch):
    def engine(name, models, output, *arguments, heard=None):
        return Program(name, [sys.executable, "-c", ANNOUNCED], programs.ENGINE_SAYS, output)

    monkeypatch.setattr(programs, "engine", engine)
    others = known()
    async with place.session():
        for number in range(5):
            write(place.files / "all.yaml", pool(models=[f"model-{number}"]), weight("search"), weight("batch"))
            await until(lambda number=number: f'"model-{number}"' in place.config())
            await until(lambda: len(descendants(os.getpid())) == len(("the gateway", "engines now", "those before")))
        assert known() - others <= len(("the gateway", "engines now", "those before", "the last that ended"))


def known() -> int:
    """How many there are that somebody knows of."""
    gc.collect()
    return sum(type(each) is Started for each in gc.get_objects())
