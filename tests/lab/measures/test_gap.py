"""The greatest gap, found in one pass, is what trying every interval finds."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import pytest
from hypothesis import Phase, find, given, settings
from support import lab_pool
from support.gap_oracle import intervals
from support.log_events import Step, log_of, steps

from fairpool_gateway.decision_log import Arrive, Dispatch, Remove
from fairpool_lab import decisions, traces
from fairpool_lab.decisions import Event, Log
from fairpool_lab.measures import gap
from fairpool_lab.policies.arrival_order import ArrivalOrder


def check(measured: gap.Gaps, log: Log) -> None:
    """The greatest gap and the greatest excess of every pair, their intervals, and the verdict."""
    tried = {(found.ahead, found.behind, found.after, found.upto): found for found in intervals(log.events)}
    assert measured.within_bound == all(found.excess <= 0 for found in tried.values())
    dispatched = {event.seq: event.tenant for event in log.events if isinstance(event, Dispatch)}
    ending_with_ahead = [found for found in tried.values() if dispatched.get(found.upto) == found.ahead]
    pairs = {(pair.greatest.ahead, pair.greatest.behind): pair for pair in measured.pairs}
    assert pairs.keys() == {(found.ahead, found.behind) for found in ending_with_ahead}
    for (ahead, behind), pair in pairs.items():
        of_pair = [found for found in tried.values() if (found.ahead, found.behind) == (ahead, behind)]
        assert pair.greatest.gap == max(found.gap for found in of_pair)
        assert pair.tightest.excess == max(
            found.excess for found in ending_with_ahead if (found.ahead, found.behind) == (ahead, behind)
        )
        for found in (pair.greatest, pair.tightest):
            assert found == tried.get((ahead, behind, found.after, found.upto))
    assert all(found.gap <= 0 for found in tried.values() if (found.ahead, found.behind) not in pairs)


def disagrees(measure: Callable[[Iterable[Event]], gap.Gaps]) -> Callable[[list[Step]], bool]:
    def on(steps: list[Step]) -> bool:
        log = log_of(steps)
        try:
            check(measure(log.events), log)
        except AssertionError:
            return True
        return False

    return on


class TestEveryInterval:
    @given(steps)
    @settings(max_examples=150, deadline=None)
    def test_one_pass_finds_what_trying_every_interval_finds(self, steps):
        log = log_of(steps)
        check(gap.measure(log.events), log)

    @pytest.mark.parametrize("broken", ["ignores removals", "forgets charges before the join", "stops before the end"])
    def test_the_comparison_catches_a_measure_that(self, broken):
        measure = {
            "ignores removals": lambda events: gap.measure(e for e in events if not isinstance(e, Remove)),
            "forgets charges before the join": lambda events: _measure_with(ForgetsEarlierCharges(), events),
            "stops before the end": lambda events: _measure_with(LeavesFirst(), events),
        }[broken]
        unshrunk = settings(max_examples=2000, database=None, phases=[Phase.generate])
        assert find(steps, disagrees(measure), settings=unshrunk)


class ForgetsEarlierCharges(gap.GapMeter):
    """Takes a tenant's last charge to be none when its queue fills again."""

    def _join(self, tenant, seq):
        tenant.last = 0
        super()._join(tenant, seq)


class LeavesFirst(gap.GapMeter):
    """Ends a joint period before the dispatch that ends it."""

    def _dispatched(self, tenant, event):
        if tenant.waiting > 1:
            super()._dispatched(tenant, event)
        else:
            tenant.charged += event.charge
            tenant.last = event.charge


def _measure_with(meter: gap.GapMeter, events: Iterable[Event]) -> gap.Gaps:
    for event in events:
        meter.observe(event)
    return meter.gaps()


EDGES = (4.0, 9.0, 9.5, 30.0, 50.0)


def worst_of_each_stretch(log: Log) -> list[tuple[int, int] | None]:
    """The worst gap of each stretch by its definition: how far beyond its bound, or else how great."""
    ends = {event.seq: event for event in log.events if isinstance(event, Dispatch)}
    tried = [found for found in intervals(log.events) if found.upto in ends and ends[found.upto].tenant == found.ahead]
    worst = []
    for since, until in zip((-1.0, *EDGES), EDGES, strict=False):
        here = [found for found in tried if since < ends[found.upto].t <= until]
        excess = max((found.excess for found in here), default=0)
        worst.append((max(0, excess), 0 if excess > 0 else max(found.gap for found in here)) if here else None)
    return worst


def measured_over_time(events: Iterable[Event], edges: Iterable[float] = EDGES) -> list[tuple[int, int] | None]:
    found = gap.over_time(events, tuple(edges))
    return [one and (max(0, one.excess), 0 if one.excess > 0 else one.gap) for one in found]


class TestOverTime:
    @given(steps)
    @settings(max_examples=100, deadline=None)
    def test_each_stretch_has_the_worst_of_the_intervals_that_end_in_it(self, steps):
        log = log_of(steps)
        assert measured_over_time(log.events) == worst_of_each_stretch(log)
        tried = set(intervals(log.events))
        assert {found for found in gap.over_time(log.events, EDGES) if found} <= tried

    @pytest.mark.parametrize(
        "broken",
        [
            lambda events: measured_over_time(events, (edge + 1 for edge in EDGES)),
            lambda events: measured_over_time(event for event in events if not isinstance(event, Remove)),
        ],
        ids=["stretches end late", "removals are not seen"],
    )
    def test_the_comparison_catches_a_measure_whose(self, broken):
        def disagrees(steps: list[Step]) -> bool:
            log = log_of(steps)
            return broken(log.events) != worst_of_each_stretch(log)

        unshrunk = settings(max_examples=2000, database=None, phases=[Phase.generate])
        assert find(steps, disagrees, settings=unshrunk)


class TestInWords:
    def test_the_last_charge_before_the_interval_belongs_to_the_bound(self):
        log = log_of(
            [
                Step("arrive", "b", 9, 0),
                Step("dispatch", "b", 9, 0),
                Step("arrive", "a", 1, 0),
                Step("arrive", "b", 1, 0),
                Step("arrive", "a", 1, 0),
                Step("dispatch", "a", 4, 0),
                Step("dispatch", "a", 5, 0),
            ]
        )
        (pair,) = gap.measure(log.events).pairs
        q = log.header.q
        assert pair.greatest == gap.Gap("a", "b", after=3, upto=6, gap=9 * q, bound=(5 + 9) * q)
        assert pair.greatest.ratio == pytest.approx(9 / 14)

    def test_an_interval_that_began_well_is_not_forgotten_for_a_later_one(self):
        crowd = [Step("arrive", tenant, 1, 0) for tenant in "ba" for _ in range(4)]
        charges = (("a", 3), ("b", 5), ("a", 4), ("a", 4))
        log = log_of([*crowd, *(Step("dispatch", tenant, cost, 0) for tenant, cost in charges)])
        worst, q = gap.measure(log.events).worst, log.header.q
        assert (worst.ahead, worst.upto, worst.gap, worst.bound) == ("a", 11, (3 - 5 + 4 + 4) * q, (4 + 0) * q)

    def test_the_worst_pair_comes_first_and_names_the_gap_that_exceeds_most(self):
        crowd = [Step("arrive", tenant, 1, 0) for tenant in "abc" for _ in range(4)]
        log = log_of([*crowd, *(Step("dispatch", "a", 3, 0) for _ in range(3)), Step("dispatch", "b", 2, 0)])
        gaps = gap.measure(log.events)
        assert not gaps.within_bound
        assert gaps.exceeded == 2
        assert (gaps.worst.ahead, gaps.worst.excess) == ("a", 6 * log.header.q)
        assert [pair.within_bound for pair in gaps.pairs] == [False, False, True, True]

    def test_tenants_that_never_meet_have_no_gap(self):
        log = log_of([Step(kind, tenant, 5, 0) for tenant in "abc" for kind in ("arrive", "dispatch")])
        gaps = gap.measure(log.events)
        assert gaps.within_bound
        assert gaps.worst is None
        assert gaps.dispatches == 3


class TestOrders:
    @pytest.fixture(scope="class")
    @staticmethod
    def real_trace():
        return traces.busiest(traces.read(traces.EXCERPT), 120)

    def test_the_scheduler_stays_within_the_bound_on_real_traffic(self, real_trace):
        lines = lab_pool.run(real_trace, weights=traces.weights(real_trace))
        gaps = gap.measure(decisions.read(lines).events)
        assert gaps.within_bound
        assert gaps.dispatches == len(real_trace)
        assert len(gaps.pairs) > 100

    def test_order_of_arrival_exceeds_it_many_times(self, real_trace):
        lines = lab_pool.run(real_trace, weights=traces.weights(real_trace), ordering=ArrivalOrder)
        gaps = gap.measure(decisions.read(lines).events)
        assert not gaps.within_bound
        assert gaps.worst.ratio > 10

    def test_hundreds_of_tenants_are_measured(self):
        events = _crowd(tenants=200, dispatches=2000)
        assert len(gap.measure(events).pairs) == 200 * 199


def _crowd(tenants: int, dispatches: int) -> list[Event]:
    """All tenants always backlogged, served in turn."""
    names = [f"t{number}" for number in range(tenants)]
    events: list[Event] = [Arrive(seq, 0.0, name, 1, f"{name}-0", 1) for seq, name in enumerate(names)]
    for turn in range(dispatches):
        name, round_ = names[turn % tenants], turn // tenants
        events.append(Arrive(len(events), 0.0, name, 1, f"{name}-{round_ + 1}", 1))
        events.append(Dispatch(len(events), 0.0, name, 1, f"{name}-{round_}", 1, 1 << 32, 0, 0, "e0"))
    return events
