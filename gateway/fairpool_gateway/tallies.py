"""What each tenant asked for and got since this gateway began: plain integers, and its last dispatches and refusals.

It is read only when somebody looks, so keeping it costs a request a few additions. What always holds: the number of
tallies is bounded, whatever tenants come. Those that the configuration lists have one each, in its order and up to
`MOST_TENANTS`; all others share one, and so do requests whose tenant was never found out. A tenant's figures never
go back while it is listed, and those of the whole pool never do.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, deque
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, fields
from typing import Final, Generic, TypeVar

from fairpool_gateway.config import ANONYMOUS, PoolConfig
from fairpool_gateway.cost import Used
from fairpool_gateway.sfq import OTHER

R = TypeVar("R", bound=Hashable)

MOST_TENANTS: Final = 100
"""How many tenants are told apart here."""

NOBODY: Final = ""
"""In place of a tenant, where a request did not show whose it is."""

KEPT: Final = 32
"""How many dispatches, and how many refusals, are remembered of each."""

WAIT_BOUNDS: Final = (0.001, 0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0, 45.0)
"""Seconds, the upper bounds of the histogram's buckets; a last one has none."""

ANSWERED: Final = "answered"
ANSWER_BROKEN: Final = "answer_broken"
TENANT_GONE: Final = "tenant_gone"
"""How a request ended that was not refused: its answer passed on whole, or broken off, or wanted no longer."""


@dataclass(slots=True)
class Counts:
    """Sums of what happened. Tokens are those of the cost model, but for `input` and `output`."""

    arrived: int = 0
    dispatched: int = 0
    completed: int = 0
    retried: int = 0
    removed: int = 0
    charged: int = 0
    used: int = 0
    input: int = 0
    output: int = 0
    overestimated: int = 0
    underestimated: int = 0


class Waits:
    """How long requests waited for their dispatch, as a histogram."""

    __slots__ = ("buckets", "microseconds")

    def __init__(self) -> None:
        self.buckets = [0] * (len(WAIT_BOUNDS) + 1)
        self.microseconds = 0

    def note(self, seconds: float) -> None:
        """One request waited for so long."""
        if seconds:
            self.buckets[bisect_left(WAIT_BOUNDS, seconds)] += 1
            self.microseconds += int(seconds * 1e6)
        else:
            self.buckets[0] += 1


@dataclass(frozen=True, slots=True)
class Refusal:
    """One refusal: when by the gateway's monotonic clock, of whose request, its `x-request-id`, and why."""

    at: float
    tenant: str
    request: str
    reason: str


class Tally(Generic[R]):
    """The figures of one tenant, or of those who share them.

    Attributes:
        tenant: whose they are; `OTHER` for all who have none of their own, `NOBODY` where no tenant was found out.
        counts: sums.
        waits: how long its dispatched requests waited.
        outcomes: how its requests ended, by reason.
        in_flight: slots that it has now.
        dispatches: its last dispatched requests, the newest last.
        refusals: its last refusals, the newest last.
    """

    __slots__ = ("counts", "dispatches", "in_flight", "outcomes", "refusals", "tenant", "waits")

    def __init__(self, tenant: str) -> None:
        self.tenant = tenant
        self.counts = Counts()
        self.waits = Waits()
        self.outcomes: Counter[str] = Counter()
        self.in_flight = 0
        self.dispatches: deque[R] = deque(maxlen=KEPT)
        self.refusals: deque[Refusal] = deque(maxlen=KEPT)

    def dispatched(self, request: R, waited: float, cost: int) -> None:
        """A request of this cost got a slot, after so many seconds."""
        counts = self.counts
        counts.dispatched += 1
        counts.charged += cost
        self.waits.note(waited)
        self.in_flight += 1
        self.dispatches.append(request)

    def gave_back(self) -> None:
        """A slot was given back."""
        self.counts.completed += 1
        self.in_flight -= 1

    def used(self, estimate: int, cost: int, used: Used) -> None:
        """What was estimated to cost so much turned out to cost so much."""
        counts = self.counts
        counts.used += cost
        counts.input += used.input
        counts.output += used.output
        if estimate > cost:
            counts.overestimated += estimate - cost
        else:
            counts.underestimated += cost - estimate

    def refused(self, now: float, tenant: str, request: str, reason: str) -> None:
        """A request was refused, whether it had waited or not."""
        self.outcomes[reason] += 1
        self.refusals.append(Refusal(now, tenant, request, reason))


class Tallies(Generic[R]):
    """The tallies of one pool."""

    def __init__(self, config: PoolConfig) -> None:
        self.nobody: Tally[R] = Tally(NOBODY)
        self._others: Tally[R] = Tally(OTHER)
        self._listed: dict[str, Tally[R]] = {}
        self._gone = Counts()
        self.configure(config)

    def __iter__(self) -> Iterator[Tally[R]]:
        """Those of the listed tenants first."""
        yield from self._listed.values()
        yield self._others
        yield self.nobody

    def configure(self, config: PoolConfig) -> None:
        """These are the tenants from now on; who is listed no longer loses its tally, and who stays keeps it."""
        listed = [tenant.name for tenant in config.tenants]
        if config.authentication.type == "Anonymous" and not listed:
            listed = [ANONYMOUS]
        before = self._listed
        self._listed = {name: before.pop(name) if name in before else Tally(name) for name in listed[:MOST_TENANTS]}
        for tally in before.values():
            _add(self._gone, tally.counts)
            tally.counts = self._gone

    def of(self, tenant: str) -> Tally[R]:
        """The tally in which this tenant's requests count."""
        return self._listed.get(tenant) or self._others

    def total(self) -> Counts:
        """The sums over the whole pool, since this gateway began."""
        total = Counts()
        _add(total, self._gone)
        for tally in self:
            _add(total, tally.counts)
        return total


def _add(sums: Counts, more: Counts) -> None:
    for field in fields(Counts):
        setattr(sums, field.name, getattr(sums, field.name) + getattr(more, field.name))
