"""Runs the rounds: each workload meets one subject after another, and then all of that again.

Rounds are interleaved (A B A B), so that whatever else the machine does meets all subjects alike. What is measured has
one core, the endpoint and the load share the other, and what these two can do themselves is measured as the subject
`direct`.
"""

from __future__ import annotations

import asyncio
import datetime as dt
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from fairpool_lab.bench import compiled
from fairpool_lab.bench.machine import Cores, cpu_seconds, described, memory, pinned
from fairpool_lab.bench.results import Measured, Results, Seen
from fairpool_lab.bench.stage import Target, staged
from fairpool_lab.bench.subjects import Subject
from fairpool_lab.bench.workloads import Workload
from fairpool_lab.errors import ProcessFailed

_PATIENCE = 180.0
_LOOK = 0.25
_LOOKS = 60


@dataclass(frozen=True, slots=True)
class Plan:
    """What meets what, and how often.

    Attributes:
        subjects: what is started.
        pairs: of a subject and a workload, in their order within a round.
        rounds: how many there are.
        doubt: whether what was measured so far asks for another round, of `most` in all.
        most: how many there may be then.
    """

    subjects: Sequence[Subject]
    pairs: Sequence[tuple[str, Workload]]
    rounds: int
    doubt: Callable[[Results], bool] = lambda _: False
    most: int = 0

    @property
    def steps(self) -> int:
        """How many measurements it takes without doubt."""
        return self.rounds * len(self.pairs)

    def goes_on(self, number: int, results: Results) -> bool:
        """Whether there is another round after so many."""
        return number < self.rounds or (number < self.most and self.doubt(results))


async def measure(plan: Plan, directory: Path, step: Callable[[str], None], say: Callable[[str], None]) -> Results:
    """Run a plan.

    Args:
        plan: what to run.
        directory: for everything that is written.
        step: is told what comes next, after each measurement.
        say: is told of each subject that is left out.
    """
    cores, load = Cores.of_this_machine(), compiled.program("load")
    began = dt.datetime.now(dt.UTC).isoformat(timespec="seconds")
    async with staged(plan.subjects, cores, directory, say) as stage:
        results = Results(described(), began, stage.about, stage.left_out)
        number = 0
        while plan.goes_on(number, results):
            number += 1
            for name, workload in plan.pairs:
                if target := stage.targets.get(name):
                    command = [*pinned(cores.around), str(load), "--port", str(target.port)]
                    before = cpu_seconds(target.session)
                    seen = await _seen([*command, *workload.command(directory)])
                    took = cpu_seconds(target.session) - before
                    results.measured.append(Measured(name, workload.name, number, seen, took, memory(target.session)))
                    await _settled(target)
                step(f"{name}: {workload.title}")
        results.unexpected = await stage.unexpected()
    return results


async def _settled(target: Target) -> None:
    """Wait until it works no more on what the load left behind, so that nobody else is measured beside that."""
    for _ in range(_LOOKS):
        before = cpu_seconds(target.session)
        await asyncio.sleep(_LOOK)
        if cpu_seconds(target.session) - before < _LOOK / 5:
            return


async def _seen(command: Sequence[str]) -> Seen:
    """What a load saw."""
    child = await asyncio.create_subprocess_exec(
        *command, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    try:
        async with asyncio.timeout(_PATIENCE):
            said, complained = await child.communicate()
    except TimeoutError:
        raise ProcessFailed(f"the load did not end within {_PATIENCE:g} s") from None
    finally:
        if child.returncode is None:
            child.kill()
            await child.wait()
    if child.returncode:
        raise ProcessFailed(f"the load ended with status {child.returncode}: {complained.decode(errors='replace')}")
    return msgspec.json.decode(said, type=Seen)
