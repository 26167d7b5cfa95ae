"""Crowds against one gateway: what they cost in memory, what the neighbour saw, and whether all came back."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Final

from fairpool_lab.crowds.members import Crowd
from fairpool_lab.crowds.neighbour import Answer
from fairpool_lab.crowds.scenarios import Scenario
from fairpool_lab.crowds.stage import Snapshot, Stage
from fairpool_lab.measures.distribution import Distribution

ALONE: Final = 1.5
"""Seconds for which the neighbour is watched alone, before the crowd comes."""

_PATIENCE = 90.0
_SETTLES = 15.0

_SPARE = 8
"""Of connections, descriptors and tasks: the neighbour's own, whose number varies."""

Crowds = Mapping[str, Crowd]
Watch = Callable[[Crowds], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Trial:
    """What one or several crowds did.

    Attributes:
        before: what the gateway held before they came.
        standing: what it held while they stood.
        after: what it held once they had left.
        peak: the most memory that it had, in bytes.
        allowed: by how many bytes its memory may have grown.
        alone: what the neighbour was answered before.
        beside: what it was answered while they came and stood.
        statuses: how many of each crowd got which status first; 0 for none.
        cpu: the part of a core that the gateway used while they stood.
    """

    before: Snapshot
    standing: Snapshot
    after: Snapshot
    peak: int
    allowed: int
    alone: list[Answer]
    beside: list[Answer]
    statuses: dict[str, dict[int, int]]
    cpu: float

    @property
    def growth(self) -> int:
        """By how many bytes memory grew."""
        return self.peak - self.before.rss

    @property
    def failed(self) -> list[Answer]:
        """What the neighbour was answered that is no answer."""
        return [answer for answer in self.alone + self.beside if answer.status != 200]


async def trial(stage: Stage, *scenarios: Scenario, seconds: float, watch: Watch | None = None) -> Trial:
    """Let the crowds of some scenarios come, stand for so long, and leave.

    Args:
        stage: where.
        scenarios: which.
        seconds: how long they stand.
        watch: is awaited with the crowds, by name, after they stood for so long, and before they are looked at.
    """
    await asyncio.sleep(ALONE)
    before = await stage.snapshot()
    began = time.monotonic()
    stage.forget_peak()
    async with asyncio.timeout(_PATIENCE), contextlib.AsyncExitStack() as around:
        crowds = {}
        for scenario in scenarios:
            gathered = await scenario.gather(stage, scenario.connections)
            crowds[scenario.name] = await around.enter_async_context(gathered)
        stood, cpu = time.monotonic(), stage.cpu_seconds()
        await asyncio.sleep(seconds)
        if watch is not None:
            await watch(crowds)
        ended = time.monotonic()
        cpu = (stage.cpu_seconds() - cpu) / (ended - stood)
        standing = await stage.snapshot()
        statuses = {name: crowd.statuses() for name, crowd in crowds.items()}
    after = await _settled(stage, before)
    return Trial(
        before=before,
        standing=standing,
        after=after,
        peak=stage.peak(),
        allowed=sum(scenario.allowed(stage.config, scenario.connections) for scenario in scenarios),
        alone=stage.answers(began - ALONE, began),
        beside=stage.answers(began, ended),
        statuses=statuses,
        cpu=cpu,
    )


async def _settled(stage: Stage, before: Snapshot) -> Snapshot:
    """What is held once everything has come back, or when it has not in time."""
    deadline = time.monotonic() + _SETTLES
    while True:
        after = await stage.snapshot()
        if came_back(before, after) or time.monotonic() > deadline:
            return after
        await asyncio.sleep(0.05)


def came_back(before: Snapshot, after: Snapshot) -> bool:
    """Whether all that the crowd had is free again."""
    few = all(
        now <= then + _SPARE
        for then, now in (
            (before.descriptors, after.descriptors),
            (before.connections, after.connections),
            (before.tasks, after.tasks),
        )
    )
    return few and after.waiting + after.in_flight <= _SPARE and after.held + after.buffered <= 64 << 10


def waits(answers: list[Answer]) -> Distribution:
    """How long a neighbour waited for its answers."""
    return Distribution.of(answer.seconds for answer in answers)
