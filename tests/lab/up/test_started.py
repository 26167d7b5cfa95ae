"""Programs that `fairpool up` has started: when they end, that no edit waits for it, and that they are forgotten."""

from __future__ import annotations

import asyncio
import gc
import os
import re
import signal
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
SAYS_MORE = (
    "import signal; signal.signal(signal.SIGUSR1, lambda *_: print('again', flush=True)); print('once', flush=True)\n"
    "while True: signal.pause()"
)
STUBBORN = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); " + ANNOUNCED


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


async def test_a_fault_in_what_hears_it_is_told_as_its_end_is(tmp_path):
    def hear(line: str) -> None:
        if "again" in line:
            raise ZeroDivisionError

    told: asyncio.Future[Exception] = asyncio.get_running_loop().create_future()
    command = [sys.executable, "-c", SAYS_MORE]
    started = Started([Program("the child", command, re.compile("once"), tmp_path / "log", hear)], told.set_result)
    await started.said()
    [child] = descendants(os.getpid())
    os.kill(child, signal.SIGUSR1)
    async with asyncio.timeout(START):
        await told
    await started.end()


@pytest.fixture
def simulated(monkeypatch) -> None:
    """Engines that announce themselves and do nothing; of the model `stubborn` one does not end when it is told."""

    def engine(name, models, output, *arguments, heard=None):
        command = [sys.executable, "-c", STUBBORN if "stubborn" in models else ANNOUNCED]
        return Program(name, command, programs.ENGINE_SAYS, output, stop_seconds=2 * START)

    monkeypatch.setattr(programs, "engine", engine)


@pytest.mark.usefixtures("simulated")
async def test_engines_of_earlier_models_that_do_not_end_delay_no_edit(place):
    async with place.session():
        for model in ("stubborn", "second", "third"):
            write(place.files / "all.yaml", pool(models=[model]), weight("search"), weight("batch"))
            await until(lambda model=model: f'"{model}"' in place.config())
        write(place.files / "all.yaml", pool(models=["third"]), weight("search"))
        await until(lambda: '"batch"' not in place.config())
        [staying] = (pid for pid, command in descendants(os.getpid()).items() if STUBBORN in command)
        os.kill(staying, signal.SIGKILL)


@pytest.mark.usefixtures("simulated")
async def test_engines_that_have_ended_are_forgotten_however_often_models_are_edited(place):
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
