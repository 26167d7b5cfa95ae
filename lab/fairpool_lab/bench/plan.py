"""What a benchmark measures: which subject meets which workload, how often, and for how long in all.

What always holds: a run ends within the time that its plan allows, whatever goes wrong, and then with fewer rounds
rather than with fewer subjects or workloads.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from fairpool_lab.bench import guard, workloads
from fairpool_lab.bench.peers import NGINX, PEERS, SGLANG
from fairpool_lab.bench.results import Results
from fairpool_lab.bench.subjects import CROWDED, DIRECT, GATEWAY, Subject
from fairpool_lab.bench.workloads import Workload

SCHEDULER_TAKES: Final = 7.0
"""Seconds in which a scheduler shows what it decides with each number of tenants."""

_FEWER: Final = 3
_STARTING: Final = 60.0
"""Seconds until all subjects serve, if none has to be installed."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What meets what, and how often.

    Attributes:
        subjects: what is started.
        pairs: of a subject and a workload, in their order within a round.
        rounds: how many there are.
        fewer: how many it is for subjects that are shown beside the others, and that no goal is about.
        scheduler: whether each round ends with the scheduler alone.
        minutes: after which nothing begins any more.
        doubt: whether what was measured so far asks for another round, of `most` in all.
        most: how many there may be then.
    """

    subjects: Sequence[Subject]
    pairs: Sequence[tuple[str, Workload]]
    rounds: int
    fewer: Mapping[str, int] = field(default_factory=dict)
    scheduler: bool = False
    minutes: float = 60.0
    doubt: Callable[[Results], bool] = lambda _: False
    most: int = 0

    def of_round(self, number: int) -> list[tuple[str, Workload]]:
        """The pairs that meet in one round; they are counted from 1."""
        return [(name, each) for name, each in self.pairs if number <= self.fewer.get(name, number)]

    @property
    def measurements(self) -> int:
        """How many it takes without doubt."""
        return sum(len(self.of_round(number)) + self.scheduler for number in range(1, self.rounds + 1))

    @property
    def takes(self) -> float:
        """Seconds that are expected of them."""
        pairs = [pair for number in range(1, self.rounds + 1) for pair in self.of_round(number)]
        return sum(each.takes for _, each in pairs) + self.rounds * self.scheduler * SCHEDULER_TAKES

    def goes_on(self, number: int, results: Results) -> bool:
        """Whether there is another round after so many."""
        return number < self.rounds or (number < self.most and self.doubt(results))

    def said(self) -> str:
        """It in a sentence."""
        minutes = (self.takes + _STARTING) / 60
        return (
            f"{self.measurements} measurements in {self.rounds} rounds: about {minutes:.0f} minutes, "
            f"none begins after {self.minutes:g}"
        )

    def rehearsed(self) -> Plan:
        """One round of moments: everything starts, is met and ends, and no figure means anything."""
        return replace(self, pairs=[(name, each.rehearsed()) for name, each in self.pairs], rounds=1)


def whole() -> Plan:
    """All peers, all workloads."""
    names = (DIRECT, *(peer.name for peer in PEERS), GATEWAY.name)
    pairs = [
        (name, workload)
        for workload in workloads.ALL
        for name in ((DIRECT, CROWDED.name) if workload in workloads.OF_TENANTS else names)
    ]
    fewer = {peer.name: _FEWER for peer in PEERS if peer not in {NGINX, SGLANG}}
    return Plan((*PEERS, GATEWAY, CROWDED), pairs, rounds=5, fewer=fewer, scheduler=True, minutes=42)


def quick() -> Plan:
    """Nginx, and what the guard compares; more rounds while something seems to have got worse."""
    recorded = guard.read()
    pairs = [
        (name, workload)
        for workload in (workloads.SIXTY_FOUR, workloads.STEADY, workloads.STREAMS)
        for name in (DIRECT, NGINX.name, GATEWAY.name)
    ]
    return Plan((NGINX, GATEWAY), pairs, rounds=3, doubt=lambda results: bool(guard.worse(results, recorded)), most=9)
