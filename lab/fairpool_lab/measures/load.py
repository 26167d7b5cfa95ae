"""How loaded a run was, and what it got done: without contention there is nothing to share, and any order is fair."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from fairpool_gateway.decision_log import Arrive, Complete, Dispatch, Remove
from fairpool_lab.decisions import Event
from fairpool_lab.measures import history


@dataclass(frozen=True, slots=True)
class Contention:
    """How many tenants were backlogged together: `seconds[k]` is the time in which exactly k were."""

    seconds: tuple[float, ...]

    def part(self, tenants: int) -> float:
        """The part of the time in which at least so many tenants were backlogged."""
        total = sum(self.seconds)
        return sum(self.seconds[tenants:]) / total if total else 0.0


@dataclass(frozen=True, slots=True)
class Throughput:
    """What a run completed: tokens in all, from its first event to its last completion."""

    seconds: float
    requests: int
    tokens: int

    @property
    def tokens_per_second(self) -> float:
        """Tokens completed in a second of the run."""
        return self.tokens / self.seconds if self.seconds else 0.0

    @property
    def requests_per_second(self) -> float:
        """Requests completed in a second of the run."""
        return self.requests / self.seconds if self.seconds else 0.0


def contention(events: Sequence[Event], *, until: float | None = None) -> Contention:
    """Count who was backlogged together, from the first event to the last, or to the last one at or before `until`."""
    waiting = Counter[str]()
    seconds: defaultdict[int, float] = defaultdict(float)
    for event, following in pairwise(events):
        if until is not None and following.t > until:
            break
        match event:
            case Arrive(tenant=tenant):
                waiting[tenant] += 1
            case Dispatch(tenant=tenant) | Remove(tenant=tenant):
                waiting[tenant] -= 1
                if not waiting[tenant]:
                    del waiting[tenant]
        seconds[len(waiting)] += following.t - event.t
    return Contention(tuple(seconds[together] for together in range(max(seconds, default=-1) + 1)))


def throughput(events: Sequence[Event], measure: history.Measure = history.charged) -> Throughput:
    """Count what was completed and told its usage: what failed or was cancelled is no work done."""
    records = history.requests(events)
    done = [event for event in events if isinstance(event, Complete) and event.used is not None]
    return Throughput(
        seconds=done[-1].t - events[0].t if done else 0.0,
        requests=len(done),
        tokens=sum(measure(records[event.seq]) for event in done),
    )
