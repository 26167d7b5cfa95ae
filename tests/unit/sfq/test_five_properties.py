"""The five properties of §7.5, with the figures of DESIGN §4; each fails for a scheduler that breaks its rule."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import sfq_broken
from support.sfq_checks import check_come_and_go, check_gap
from support.sfq_events import TENANTS, WEIGHTS, Ask, events, long_run, price
from support.sfq_history import History
from support.sfq_oracle import Oracle

from fairpool_gateway.sfq import Scheduler


def backlog(run, costs, length):
    """Both tenants wait for `length` dispatches; yields how many each has had after each of them."""
    counts = dict.fromkeys(costs, 0)
    for tenant, cost in costs.items():
        run.arrive(tenant, cost)
        run.arrive(tenant, cost)
    for _ in range(length):
        tenant = run.dispatch().tenant
        counts[tenant] += 1
        run.arrive(tenant, costs[tenant])
        yield counts


class TestEqualShares:
    """(1) Equal costs and weights: the counts differ by one at most, and by two after a later join."""

    @staticmethod
    def check(make, cost):
        run = History(make())
        for counts in backlog(run, {"a": cost, "b": cost}, 200):
            assert abs(counts["a"] - counts["b"]) <= 1

    @given(cost=st.integers(1, 10**9), weight=st.sampled_from(WEIGHTS))
    @settings(deadline=None, max_examples=30)
    def test_joined_at_equal_tags(self, cost, weight):
        self.check(lambda: Scheduler(price, default_weight=weight), cost)

    @given(cost=st.integers(1, 10**9), head_start=st.integers(1, 50))
    @settings(deadline=None, max_examples=30)
    def test_after_a_later_join(self, cost, head_start):
        run = History(Scheduler(price))
        for _ in range(head_start + 200):
            run.arrive("a", cost)
        for _ in range(head_start):
            run.dispatch()
        for _ in range(200):
            run.arrive("b", cost)
        went = [run.dispatch().tenant for _ in range(200)]
        assert all(abs(went[:n].count("a") - went[:n].count("b")) <= 2 for n in range(201))

    def test_arrival_order_is_caught(self):
        with pytest.raises(AssertionError):
            run = History(sfq_broken.ArrivalOrder(price))
            for _ in range(4):
                run.arrive("a", 1)
            for counts in backlog(run, {"a": 1, "b": 1}, 200):
                assert abs(counts["a"] - counts["b"]) <= 1


class TestTenfoldCost:
    """(2) Who sends requests of ten times the cost gets a tenth of the count."""

    @staticmethod
    def check(scheduler, unit):
        for counts in backlog(History(scheduler), {"a": 10 * unit, "b": unit}, 400):
            assert abs(10 * counts["a"] - counts["b"]) <= 11

    @given(unit=st.integers(1, 10**9))
    @settings(deadline=None, max_examples=30)
    def test_counts(self, unit):
        self.check(Scheduler(price), unit)

    def test_charging_on_completion_is_caught(self):
        with pytest.raises(AssertionError):
            self.check(sfq_broken.ChargeOnCompletion(price), 1)


class TestNoSavings:
    """(3) Who returns with `S_i <= v` starts at `v`, and from then on the gap bound holds."""

    @staticmethod
    def check(scheduler, idle):
        run = History(scheduler)
        run.arrive("sleeper", 5)
        for _ in range(idle):
            run.arrive("worker", 3)
        for _ in range(idle):
            run.dispatch()
        v = run.scheduler.v
        for _ in range(200):
            run.arrive("sleeper", 5)
            run.arrive("worker", 3)
        first = next(d for d in iter(run.dispatch, None) if d.tenant == "sleeper")
        assert first.start_tag == v
        check_gap(run.moments)

    @given(idle=st.integers(10, 200))
    @settings(deadline=None, max_examples=30)
    def test_a_long_idle_tenant_has_no_priority(self, idle):
        self.check(Scheduler(price), idle)

    def test_least_served_first_is_caught(self):
        with pytest.raises(AssertionError):
            self.check(sfq_broken.LeastServedFirst(price), 200)


class TestOneAtATime:
    """(4) Sending one request at a time, and emptying one's queue each time, gains nothing against who waits."""

    @staticmethod
    def check(scheduler, costs):
        run = History(scheduler)
        for _ in range(400):
            run.arrive("deep", 10)
        run.arrive("single", costs[0])
        for number in range(300):
            if run.dispatch().tenant == "single":
                run.arrive("single", costs[(number + 1) % len(costs)])
        check_come_and_go(run.moments)
        received, deep = run.charged["single"], run.charged["deep"]
        assert abs(received - deep) <= 2 * max(charge.decision.charge for charge in run.moments if charge.decision)

    @given(costs=st.lists(st.integers(1, 200), min_size=1, max_size=9))
    @settings(deadline=None, max_examples=30)
    def test_it_gets_its_share_and_no_more(self, costs):
        self.check(Scheduler(price), costs)

    def test_a_reset_on_return_is_caught(self):
        with pytest.raises(AssertionError):
            self.check(sfq_broken.ResetOnReturn(price), [40])


class TestFreshStart:
    """(5) After a free slot found nobody backlogged, decisions are those of a fresh scheduler on the same events."""

    @staticmethod
    def check(make, before, after):
        used, fresh = History(make()), History(make())
        used.play(before)
        while used.dispatch() is not None:
            pass
        offset, first = used.scheduler.v, len(used.moments)
        used.play(after)
        fresh.play(after)
        decided = [moment.decision for moment in used.moments[first:] if moment.decision]
        assert [(d.tenant, d.charge, d.start_tag - offset) for d in decided] == [
            (d.tenant, d.charge, d.start_tag) for d in fresh.decisions
        ]

    @given(before=events(reweigh=False), after=events(reweigh=False))
    @settings(deadline=None, max_examples=30)
    def test_on_random_events(self, before, after):
        self.check(lambda: Scheduler(price), before, after)

    def test_in_a_long_run(self):
        self.check(lambda: Scheduler(price), self.quiet(1500), [*self.quiet(1500), Ask()])

    @staticmethod
    def quiet(length):
        """A long run without changes of weights, which a fresh scheduler would not know."""
        return [event for event in long_run(5, length, TENANTS) if "weight" not in event._fields]

    def test_no_idle_reset_is_caught(self):
        quiet = self.quiet(600)
        self.check(lambda: Oracle(price), quiet, quiet)
        with pytest.raises(AssertionError):
            self.check(lambda: sfq_broken.NoIdleReset(price), quiet, quiet)
