"""The greatest gap: how far one tenant ever got ahead of another while both were backlogged, against its bound.

For every ordered pair of tenants and every interval `(t1, t2]` of events in which both stay backlogged, from the
later join through the event that empties either queue, `N_i - N_j <= l_i(t2) + l_j(t1)` must hold (DESIGN §4): `N`
sums the charges made in the interval, `l` is the last charge at or before that moment, 0 if none. The bound hangs on
both ends of the interval, so the greatest gap need not be the one that breaks it; both are found, exactly.

With `D` the sum of all charges to i minus those to j, the condition reads `D(t2) - l_i(t2) <= D(t1) + l_j(t1)`: the
least right side so far in a joint period answers for all earlier `t1`. Only a dispatch to i can raise the left side
and only one to j can lower the right one, so a dispatch costs a few comparisons for each tenant backlogged beside
it. An interval that ends with another event has no greater a gap, and no smaller a bound, than a shorter one that
ends with a dispatch to i, or no positive gap at all.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from fairpool_gateway.decision_log import Arrive, Dispatch, Remove
from fairpool_lab.decisions import Event


@dataclass(frozen=True, slots=True)
class Gap:
    """How far `ahead` got ahead of `behind` in the events after number `after` through number `upto`, in units."""

    ahead: str
    behind: str
    after: int
    upto: int
    gap: int
    bound: int

    @property
    def excess(self) -> int:
        """By how much the gap exceeds its bound; at most zero if it does not."""
        return self.gap - self.bound

    @property
    def ratio(self) -> float:
        """The gap over its bound, which is positive: the interval ends with a charge to `ahead`."""
        return self.gap / self.bound


@dataclass(frozen=True, slots=True)
class Pair:
    """One ordered pair's greatest gap, and the gap that exceeds its bound most or comes closest to it."""

    greatest: Gap
    tightest: Gap

    @property
    def within_bound(self) -> bool:
        """Whether no gap of the pair exceeded its bound."""
        return self.tightest.excess <= 0

    @property
    def worst(self) -> Gap:
        """The gap to look at: the greatest, or where the bound was exceeded the one that exceeds it most."""
        return self.greatest if self.within_bound else self.tightest


@dataclass(frozen=True, slots=True)
class Gaps:
    """Every ordered pair of which the first was dispatched while both were backlogged; the worst pair first."""

    dispatches: int
    pairs: tuple[Pair, ...]

    @property
    def worst(self) -> Gap | None:
        """The worst gap of all; None if no tenant was ever dispatched while another was backlogged too."""
        return self.pairs[0].worst if self.pairs else None

    @property
    def exceeded(self) -> int:
        """How many pairs exceeded their bound."""
        return sum(not pair.within_bound for pair in self.pairs)

    @property
    def within_bound(self) -> bool:
        """The verdict: no pair exceeded its bound over any interval."""
        return not self.exceeded


def measure(events: Iterable[Event]) -> Gaps:
    """The gaps of a log's events, which `decisions` has checked."""
    meter = GapMeter()
    for event in events:
        meter.observe(event)
    return meter.gaps()


def over_time(events: Iterable[Event], edges: Sequence[float]) -> tuple[Gap | None, ...]:
    """The worst gap of all intervals that end in each stretch of time, after one edge and up to the next.

    The worst is the greatest, or where a bound was exceeded the one that exceeds it most; None where no interval ends
    with a dispatch to the tenant ahead. The edges are in order; the first stretch begins with the first event.
    """
    meter = _MeterOfStretches()
    found: list[Gap | None] = []
    for event in events:
        while len(found) < len(edges) and event.t > edges[len(found)]:
            found.append(meter.stretch())
        meter.observe(event)
    found.extend(meter.stretch() for _ in range(len(found), len(edges)))
    return tuple(found)


class _Tenant:
    """One tenant: requests waiting, the sum of its charges, the last one, and its lead over each other tenant."""

    __slots__ = ("charged", "last", "leads", "name", "waiting")

    def __init__(self, name: str) -> None:
        self.name = name
        self.waiting = 0
        self.charged = 0
        self.last = 0
        self.leads: dict[str, _Lead] = {}


class _Lead:
    """The lead `D` of i over j: where in this joint period intervals had best begin, and the worst one ever seen.

    `floor` is the least `D` and `low` the least `D + l_j`; with each, after which event and with which `l_j` it held.
    """

    __slots__ = ("floor", "floor_at", "greatest", "low", "low_at", "most", "tightest", "worst")

    def __init__(self) -> None:
        self.most = self.worst = -math.inf
        self.greatest: Gap | None = None
        self.tightest: Gap | None = None

    def begin(self, lead: int, last: int, seq: int) -> None:
        """A joint period begins, and so may an interval; j was last charged `last`."""
        self.floor, self.low = lead, lead + last
        self.floor_at = self.low_at = (seq, last)

    def fall(self, lead: int, last: int, seq: int) -> None:
        """Now j was dispatched and charged `last`: an interval had perhaps better begin here."""
        if lead < self.floor:
            self.floor, self.floor_at = lead, (seq, last)
        if lead + last < self.low:
            self.low, self.low_at = lead + last, (seq, last)

    def rise(self, lead: int, last: int, seq: int, ahead: str, behind: str) -> None:
        """Now i was dispatched and charged `last`: an interval that ends here is perhaps the worst."""
        if lead - self.floor > self.most:
            self.most = lead - self.floor
            after, before = self.floor_at
            self.greatest = Gap(ahead, behind, after, seq, lead - self.floor, last + before)
        if lead - last - self.low > self.worst:
            self.worst = lead - last - self.low
            after, before = self.low_at
            self.tightest = Gap(ahead, behind, after, seq, lead - self.low + before, last + before)


class GapMeter:
    """Takes the events of a log one by one, in order; `gaps` may be asked at any moment."""

    def __init__(self) -> None:
        self._tenants: dict[str, _Tenant] = {}
        self._backlogged: dict[str, _Tenant] = {}
        self._dispatches = 0

    def observe(self, event: Event) -> None:
        """Take the next event."""
        match event:
            case Arrive(tenant=name):
                tenant = self._tenants.get(name) or self._tenants.setdefault(name, _Tenant(name))
                if not tenant.waiting:
                    self._join(tenant, event.seq)
                tenant.waiting += 1
            case Dispatch(tenant=name):
                self._dispatched(self._tenants[name], event)
                self._left(self._tenants[name])
            case Remove(tenant=name):
                self._left(self._tenants[name])

    def gaps(self) -> Gaps:
        """What was seen so far."""
        pairs = [
            Pair(lead.greatest, lead.tightest)
            for tenant in self._tenants.values()
            for lead in tenant.leads.values()
            if lead.greatest is not None and lead.tightest is not None
        ]
        pairs.sort(key=lambda pair: (-max(0, pair.tightest.excess), -pair.worst.gap))
        return Gaps(self._dispatches, tuple(pairs))

    def _join(self, tenant: _Tenant, seq: int) -> None:
        for other in self._backlogged.values():
            for ahead, behind in ((tenant, other), (other, tenant)):
                lead = ahead.leads.get(behind.name) or ahead.leads.setdefault(behind.name, _Lead())
                lead.begin(ahead.charged - behind.charged, behind.last, seq)
        self._backlogged[tenant.name] = tenant

    def _dispatched(self, tenant: _Tenant, event: Dispatch) -> None:
        self._dispatches += 1
        tenant.charged += event.charge
        tenant.last = event.charge
        name, charged, last, seq = tenant.name, tenant.charged, tenant.last, event.seq
        for other in self._backlogged.values():
            if other is not tenant:
                lead = charged - other.charged
                tenant.leads[other.name].rise(lead, last, seq, name, other.name)
                other.leads[name].fall(-lead, last, seq)

    def _left(self, tenant: _Tenant) -> None:
        tenant.waiting -= 1
        if not tenant.waiting:
            del self._backlogged[tenant.name]


class _MeterOfStretches(GapMeter):
    """Tells, besides, the worst gap of the intervals that ended since it was last asked for that."""

    def __init__(self) -> None:
        super().__init__()
        self._worst: Gap | None = None

    def stretch(self) -> Gap | None:
        """The worst gap since the last stretch."""
        worst, self._worst = self._worst, None
        return worst

    def _dispatched(self, tenant: _Tenant, event: Dispatch) -> None:
        super()._dispatched(tenant, event)
        for other in self._backlogged.values():
            if other is not tenant:
                lead, ahead = tenant.leads[other.name], tenant.charged - other.charged
                beyond = ahead - tenant.last > lead.low
                after, before = lead.low_at if beyond else lead.floor_at
                gap = ahead - (lead.low - before if beyond else lead.floor)
                if self._worst is None or _is_worse(gap, tenant.last + before, self._worst):
                    self._worst = Gap(tenant.name, other.name, after, event.seq, gap, tenant.last + before)


def _is_worse(gap: int, bound: int, than: Gap) -> bool:
    return (max(0, gap - bound), gap) > (max(0, than.excess), than.gap)
