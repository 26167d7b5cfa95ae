"""What a decision and a tenant cost: heap operations and entries are counted, never seconds."""

import math
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.sfq_events import Request, events, long_run, price
from support.sfq_history import History

from fairpool_gateway import sfq
from fairpool_gateway.sfq import OTHER, Scheduler, charge


class Steps:
    """How many steps the heaps took: about log2(n) for an operation on n entries, n to build one."""

    def __init__(self, monkeypatch):
        self.taken = 0
        for name in ("heappush", "heappop", "heapreplace"):
            monkeypatch.setattr(sfq, name, self._counting(getattr(sfq, name), lambda n: math.log2(n + 2)))
        monkeypatch.setattr(sfq, "heapify", self._counting(sfq.heapify, lambda n: n))

    def _counting(self, operation, steps):
        def counted(heap, *args):
            self.taken += steps(len(heap))
            return operation(heap, *args)

        return counted


@pytest.fixture
def steps(monkeypatch):
    return Steps(monkeypatch)


def requests():
    number = 0
    while True:
        number += 1
        yield Request(number, 1 + number % 7)


@pytest.mark.parametrize("tenants", [100, 1_000, 10_000, 100_000])
class TestADecisionCostsLogarithmicTime:
    def test_while_all_stay_backlogged(self, steps, tenants):
        scheduler, made = Scheduler(price, max_tenants=tenants), requests()
        for number in range(tenants):
            scheduler.arrive(f"t{number}", next(made))
            scheduler.arrive(f"t{number}", next(made))
        steps.taken = 0
        decisions = 20_000
        for _ in range(decisions):
            decision = scheduler.dispatch()
            scheduler.arrive(decision.tenant, next(made))
        assert steps.taken / decisions <= 2 * math.log2(tenants + 2)

    def test_while_tenants_come_and_go(self, steps, tenants):
        scheduler, made = Scheduler(price, max_tenants=tenants), requests()
        for number in range(tenants):
            scheduler.arrive(f"t{number}", next(made))
        steps.taken = 0
        decisions = 20_000
        for _ in range(decisions):
            decision = scheduler.dispatch()
            scheduler.arrive(decision.tenant, next(made))
        assert steps.taken / decisions <= 5 * math.log2(tenants + 2)

    def test_while_requests_are_removed_and_resubmitted(self, steps, tenants):
        chance = random.Random(1)
        scheduler, made = Scheduler(price, max_tenants=tenants), requests()
        waits = {}
        for number in range(tenants):
            waits[f"t{number}"] = next(made)
            scheduler.arrive(f"t{number}", waits[f"t{number}"])
        steps.taken = 0
        names, happened = list(waits), 0
        for _ in range(2):
            gone = chance.sample(names, len(names) * 2 // 3)
            for name in gone:
                scheduler.remove(name, waits[name])
            for name in gone:
                waits[name] = next(made)
                scheduler.arrive(name, waits[name])
            happened += 2 * len(gone)
        assert steps.taken / happened <= 3 * math.log2(tenants + 2)


class TestAnIdleTenantThatDoesNotLeadCostsNoMemory:
    @staticmethod
    def size(scheduler):
        return len(scheduler._tenants), len(scheduler._listed), len(scheduler._parked)

    def test_fresh_identities_that_arrive_and_cancel_without_any_dispatch(self):
        scheduler = Scheduler(price, max_tenants=10**9)
        scheduler.arrive("stays", Request(0, 1))
        for number in range(1, 20_000):
            scheduler.arrive(f"fresh-{number}", Request(number, 1))
            scheduler.remove(f"fresh-{number}", Request(number, 1))
            assert max(self.size(scheduler)) <= 4

    def test_fresh_identities_that_are_served_once_are_as_many_as_the_bound_says(self):
        scheduler = Scheduler(price, weights={"stays": 100}, max_tenants=50)
        served = 0
        for number in range(20_000):
            scheduler.arrive("stays", Request(-number, 1))
            scheduler.arrive(f"fresh-{number}", Request(number, 1))
            served += scheduler.dispatch().tenant == "stays"
            assert max(self.size(scheduler)) <= 50 + len(("stays", "_other"))
        assert served >= 20_000 // 52

    def test_a_hundred_thousand_tenants_go_by_tag_and_are_forgotten_when_the_competition_is_over(self):
        """While all wait from the start, the order is that of all requests sorted by (start tag, tenant)."""
        scheduler = Scheduler(price, max_tenants=10**9)
        due = []
        for number in range(100_000):
            tenant, first, second = f"t{number}", 1 + number * 7919 % 997, 1 + number % 10
            scheduler.arrive(tenant, Request(number, first))
            scheduler.arrive(tenant, Request(number + 100_000, second))
            due += [(0, tenant), (charge(first, 100), tenant)]
        assert [(d.start_tag, d.tenant) for d in iter(scheduler.dispatch, None)] == sorted(due)
        assert self.size(scheduler) == (0, 0, 0)

    def test_tenants_who_cancelled_are_forgotten_while_others_drain(self):
        scheduler = Scheduler(price)
        for number in range(100):
            scheduler.arrive(f"t{number:02}", Request(number, 1))
        for number in range(50, 100):
            scheduler.remove(f"t{number}", Request(number, 1))
        assert len(scheduler._listed) == 100
        for waiting in range(49, -1, -1):
            scheduler.dispatch()
            assert len(scheduler._listed) <= 2 * waiting

    @staticmethod
    def check_caught_up_are_forgotten():
        """A thousand tenants lead; then virtual time passes all of them at once."""
        scheduler = Scheduler(price)
        for number in range(1000):
            scheduler.arrive(f"t{number}", Request(number, 1))
        for number in range(1000, 1600):
            scheduler.arrive("worker", Request(number, 10))
        for _ in range(1001):
            scheduler.dispatch()
        assert len(scheduler._tenants) == 1001
        for dispatches in range(1, 501):
            scheduler.dispatch()
            assert len(scheduler._tenants) == 1001 - 2 * dispatches
        assert [meter.tenant for meter in scheduler.meters()] == ["worker"]

    def test_those_whom_virtual_time_caught_up_with_are_forgotten_two_per_dispatch(self):
        self.check_caught_up_are_forgotten()

    def test_remembering_them_is_caught(self, monkeypatch):
        monkeypatch.setattr(sfq, "_FORGET_PER_DISPATCH", 0)
        with pytest.raises(AssertionError):
            self.check_caught_up_are_forgotten()


class TestTheBooksAreRight:
    """What the scheduler counts and flags for speed is what a count of the things themselves gives."""

    @given(events(most=120), st.integers(0, 5))
    @settings(deadline=None, max_examples=100)
    def test_on_random_events(self, sequence, bound):
        self.check(sequence, bound)

    @pytest.mark.parametrize("seed", range(4))
    def test_in_long_runs(self, seed):
        self.check(long_run(seed, 1500, [OTHER, *(f"t{number}" for number in range(50))]), bound=12 * seed)

    def check(self, sequence, bound):
        run = History(Scheduler(price, weights={"a": 3, "t1": 3}, max_tenants=bound))
        for event in sequence:
            run.play([event])
            scheduler, waiting = run.scheduler, run.moments[-1].backlogged
            tenants = scheduler._tenants
            self.check_heap(scheduler._listed, {name for name, known in tenants.items() if known.listed})
            self.check_heap(scheduler._parked, {name for name, known in tenants.items() if known.parked})
            assert all(key == known.meter >= scheduler.v for key, _, known in scheduler._listed)
            assert all(key <= known.meter for key, _, known in scheduler._parked)
            assert waiting == {name for name, known in tenants.items() if known.queue}
            assert scheduler._emptied == sum(not known.queue for _, _, known in scheduler._listed) <= len(waiting)
            assert scheduler._strangers == sum(not (name in scheduler._weights or name == OTHER) for name in tenants)
            for name, known in tenants.items():
                assert known.listed or known.parked, f"{name} is remembered for nothing"
                assert known.listed or not known.queue, f"{name} waits outside the order"

    @staticmethod
    def check_heap(heap, names):
        assert sorted(name for _, name, _ in heap) == sorted(names)
        assert all(heap[(place - 1) // 2] < heap[place] for place in range(1, len(heap)))
