"""Runs the rounds: each workload meets one subject after another, and then all of that again.

Rounds are interleaved (A B A B), so that whatever else the machine does meets all subjects alike. What is measured has
one core, the endpoint and the load share the other, and what these two can do themselves is measured as the subject
`direct`. What always holds: a measurement that fails is named, and takes no other with it.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

import msgspec

from fairpool_lab.bench import compiled, scheduler
from fairpool_lab.bench.machine import Cores, cpu_seconds, memory, pinned
from fairpool_lab.bench.plan import SCHEDULER_TAKES, Plan
from fairpool_lab.bench.progress import Progress
from fairpool_lab.bench.results import Decided, Measured, Results, Seen
from fairpool_lab.bench.stage import Stage, Target, staged
from fairpool_lab.bench.workloads import Workload
from fairpool_lab.errors import LabError, ProcessFailed

_PATIENCE = 75.0
"""Seconds beyond those for which it measures, in which a load waits for the last answer, and ends."""
_LOOK = 0.25
_LOOKS = 60

T = TypeVar("T")


async def measure(plan: Plan, directory: Path, results: Results, progress: Progress) -> None:
    """Run a plan.

    Args:
        plan: what to run.
        directory: for everything that is written.
        results: take what was measured, as soon as it was.
        progress: is told what comes next, and of each subject that is left out.
    """
    ends = time.monotonic() + 60 * plan.minutes
    cores = Cores.of_this_machine()
    async with staged(plan.subjects, cores, directory, progress.say) as stage:
        results.subjects, results.left_out = stage.about, stage.left_out
        rounds = _Rounds(plan, directory, results, progress, stage, cores)
        number = 0
        while plan.goes_on(number, results):
            number += 1
            if not await rounds.run(number, ends):
                results.missing.append(f"no more than a part of round {number}: {plan.minutes:g} minutes were over")
                break
        results.unexpected = await stage.unexpected()


class _Rounds:
    """A plan's rounds on a stage."""

    def __init__(
        self, plan: Plan, directory: Path, results: Results, progress: Progress, stage: Stage, cores: Cores
    ) -> None:
        self._plan = plan
        self._directory = directory
        self._results = results
        self._progress = progress
        self._stage = stage
        self._cores = cores
        self._load = [*pinned(cores.around), str(compiled.program("load"))]

    async def run(self, number: int, ends: float) -> bool:
        """One of them; false if time ran out before it was over."""
        for name, workload in self._plan.of_round(number):
            if time.monotonic() + workload.takes > ends:
                return False
            self._progress.begin(f"round {number}, {workload.name}, {name}", workload.takes)
            if target := self._stage.targets.get(name):
                try:
                    await self._meet(number, name, target, workload)
                except LabError as error:
                    self._miss(f"{name}, {workload.name}, round {number}: {error}")
        if self._plan.scheduler:
            self._progress.begin(f"round {number}, the scheduler alone", SCHEDULER_TAKES)
            command = [*pinned(self._cores.subject), sys.executable, "-m", scheduler.__name__, "--json"]
            try:
                decided = await said_by(command, SCHEDULER_TAKES, dict[int, float])
                self._results.decided.append(Decided(number, decided))
            except LabError as error:
                self._miss(f"the scheduler, round {number}: {error}")
        return True

    async def _meet(self, number: int, name: str, target: Target, workload: Workload) -> None:
        before = cpu_seconds(target.session)
        command = [*self._load, "--port", str(target.port), *workload.command(self._directory)]
        seen = await said_by(command, workload.takes, Seen)
        took = cpu_seconds(target.session) - before
        if name in self._stage.targets:
            self._results.measured.append(Measured(name, workload.name, number, seen, took, memory(target.session)))
            await _settled(target)

    def _miss(self, what: str) -> None:
        self._results.missing.append(what)
        self._progress.say(f"not measured: {what}")


async def _settled(target: Target) -> None:
    """Wait until it works no more on what the load left behind, so that nobody else is measured beside that."""
    for _ in range(_LOOKS):
        before = cpu_seconds(target.session)
        await asyncio.sleep(_LOOK)
        if cpu_seconds(target.session) - before < _LOOK / 5:
            return


async def said_by(command: Sequence[str], seconds: float, kind: type[T]) -> T:
    """What a program says that takes so many seconds; raises `ProcessFailed` where it says nothing of this kind."""
    child = await asyncio.create_subprocess_exec(
        *command, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    try:
        async with asyncio.timeout(seconds + _PATIENCE):
            said, complained = await child.communicate()
    except TimeoutError:
        raise ProcessFailed(f"it did not end within {seconds + _PATIENCE:g} s") from None
    finally:
        if child.returncode is None:
            child.kill()
            await child.wait()
    if child.returncode:
        raise ProcessFailed(f"it ended with status {child.returncode}: {complained.decode(errors='replace')}")
    try:
        return msgspec.json.decode(said, type=kind)
    except msgspec.MsgspecError as error:
        raise ProcessFailed(f"it said what cannot be read: {error}") from error
