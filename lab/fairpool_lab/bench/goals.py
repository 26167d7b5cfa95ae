"""What the gateway has to reach, and what must not get worse: ratios of what one round measured, pair by pair.

Seconds depend on the machine and on what else it does; a ratio of two things measured one after the other hardly does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from fairpool_lab.bench import backlog, scheduler, workloads
from fairpool_lab.bench.peers import NGINX, SGLANG
from fairpool_lab.bench.results import Figure, Results, Round, Seen, Spread, spread
from fairpool_lab.bench.subjects import CROWDED, DIRECT, GATEWAY
from fairpool_lab.bench.workloads import Workload

_MICROSECOND = 1.0


@dataclass(frozen=True, slots=True)
class Goal:
    """One of them.

    Attributes:
        says: what is compared, in words.
        figure: of one round.
        bound: what the median of all rounds has to keep to.
        at_least: whether the bound is the least, or else the most.
    """

    says: str
    figure: Figure
    bound: float
    at_least: bool = False

    def met(self, value: float) -> bool:
        """Whether a median keeps to it."""
        return value >= self.bound if self.at_least else value <= self.bound


def _seen(subject: str, workload: Workload, figure: Callable[[Seen], float]) -> Figure:
    return lambda found: figure(found.seen(subject, workload.name))


def _rate(subject: str, workload: Workload) -> Figure:
    return _seen(subject, workload, lambda seen: seen.per_second)


def _p99(subject: str, workload: Workload) -> Figure:
    return _seen(subject, workload, lambda seen: seen.latency.p99)


def _events(subject: str, workload: Workload) -> Figure:
    return lambda found: found.by[subject, workload.name].cpu_per_events


def _requests(subject: str, workload: Workload) -> Figure:
    return lambda found: found.by[subject, workload.name].cpu_per_request


def _added(subject: str, figure: Callable[[Seen], float]) -> Figure:
    """Beyond what the endpoint itself takes; at least a microsecond, lest noise divide by nothing."""
    through, direct = (_seen(name, workloads.STEADY, figure) for name in (subject, DIRECT))
    return lambda found: max(through(found) - direct(found), _MICROSECOND)


def _ratio(one: Figure, other: Figure) -> Figure:
    return lambda found: one(found) / other(found)


def _added_ratio(figure: Callable[[Seen], float]) -> Figure:
    return _ratio(_added(GATEWAY.name, figure), _added(NGINX.name, figure))


def _ceiling(found: Round) -> float:
    """What load and endpoint do with nothing between them, of what they do with the fastest there."""
    rates = {name: each.seen.per_second for (name, workload), each in found.by.items() if workload == _A.name}
    return rates[DIRECT] / max((rate for name, rate in rates.items() if name != DIRECT), default=0.0)


def _decided(tenants: int) -> Figure:
    return lambda found: found.decided[tenants]


_A: Final = workloads.SIXTY_FOUR
_FEW, _SOME, _MANY = backlog.TENANTS

GOALS: Final = (
    Goal(
        f"(a) requests/s at 64 connections, of {SGLANG.name}'s",
        _ratio(_rate(GATEWAY.name, _A), _rate(SGLANG.name, _A)),
        1.0,
        at_least=True,
    ),
    Goal(
        f"(a) p99 at 256 connections, of {SGLANG.name}'s",
        _ratio(_p99(GATEWAY.name, workloads.MANY), _p99(SGLANG.name, workloads.MANY)),
        0.5,
    ),
    Goal("(b) added p50 at 2,000 requests/s, of nginx's", _added_ratio(lambda seen: seen.latency.p50), 1.5),
    Goal("(b) added p99, likewise", _added_ratio(lambda seen: seen.latency.p99), 5.0),
    Goal(
        f"(c) processor time per event at 200 streams, of {SGLANG.name}'s",
        _ratio(_events(GATEWAY.name, workloads.STREAMS), _events(SGLANG.name, workloads.STREAMS)),
        1.0,
    ),
    Goal(
        "(c) p99 of the lateness of events at 200 streams, in ms",
        _seen(GATEWAY.name, workloads.STREAMS, lambda seen: seen.event_lateness.p99 / 1000),
        1.0,
    ),
    Goal(
        "(d) p99 of small requests among large ones, of that without",
        _ratio(_p99(GATEWAY.name, workloads.MIXED), _p99(GATEWAY.name, workloads.STEADY)),
        2.0,
    ),
    Goal(
        "(e) requests/s while 10,000 wait, of those at 64 connections",
        _ratio(_rate(CROWDED.name, workloads.WAIT), _rate(GATEWAY.name, _A)),
        0.9,
        at_least=True,
    ),
    Goal(
        "(f) requests/s with 5,000 tenants backlogged, of those at 64 connections",
        _ratio(_rate(CROWDED.name, workloads.TENANTS_WAIT), _rate(GATEWAY.name, _A)),
        0.9,
        at_least=True,
    ),
    Goal(
        f"the scheduler alone: thousands of decisions/s, {_SOME:,} tenants backlogged",
        _ratio(_decided(_SOME), lambda _: 1000.0),
        350.0,
        at_least=True,
    ),
    Goal(
        f"the scheduler alone: {_MANY:,} tenants, times slower than with {_FEW}",
        _ratio(_decided(_FEW), _decided(_MANY)),
        scheduler.MOST_SLOWER,
    ),
    Goal(
        "load and endpoint alone: requests/s at 64 connections, of the fastest's",
        _ceiling,
        2.0,
        at_least=True,
    ),
)
"""What makes nobody ask what the gateway costs, and that it is the gateway which was measured."""

GUARDED: Final = {
    "requests/s at 64 connections, of nginx's": (_ratio(_rate(GATEWAY.name, _A), _rate(NGINX.name, _A)), True),
    "processor time per request at 64 connections, of nginx's": (
        _ratio(_requests(GATEWAY.name, _A), _requests(NGINX.name, _A)),
        False,
    ),
    "processor time per event at 200 streams, of nginx's": (
        _ratio(_events(GATEWAY.name, workloads.STREAMS), _events(NGINX.name, workloads.STREAMS)),
        False,
    ),
}
"""What `make bench-quick` compares with what was recorded: each figure, and whether more of it is better.

No latency is among them: beside others on the same cores it tells more of those than of the gateway.
"""


def reached(results: Results) -> Iterator[tuple[Goal, Spread | None]]:
    """Each goal with what was measured of it, None where something was left out."""
    rounds: list[Round] = list(results.rounds())
    for goal in GOALS:
        yield goal, spread(rounds, goal.figure)
