"""A pool that carries: its charges make good what earlier ones were off by, through edits and failures of all kinds."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.config import pool_config
from support.dispatchers import spec
from support.requests import request

from fairpool_gateway.cost import Used
from fairpool_gateway.decision_log import DecisionLog, Dispatch
from fairpool_gateway.dispatcher import Dispatcher, State
from fairpool_lab import decisions

ESTIMATE = 100 + 2 * 256
"""What the first of a tenant's requests are estimated to cost."""


def config(*, carry=True, tenants=("a", "b"), **fields):
    return pool_config(tenants=[{"name": name} for name in tenants], cost={"carry": carry}, **fields)


class Pool:
    """One dispatcher with as many slots as are wanted, and the requests that went."""

    def __init__(self, slots=1, **fields):
        self.lines = []
        log = DecisionLog(self.lines.append, pool="p", weights={"a": 100, "b": 100}, default_weight=100)
        self.dispatcher = Dispatcher(config(**fields), log=log)
        self.dispatcher.replace_endpoints(0.0, [spec(0, slots)])
        self.asked = 0

    @property
    def debts(self):
        return dict(self.dispatcher.charging.debts(self.dispatcher.tallies) or {})

    def ask(self, tenant="a"):
        self.asked += 1
        made = request(f"{tenant}{self.asked}", tenant)
        self.dispatcher.arrive(0.0, made)
        return made

    def complete(self, made, output):
        self.dispatcher.complete(0.0, made, Used(100, output))


def test_what_a_request_used_beyond_its_estimate_is_in_the_next_charge():
    pool = Pool()
    first, second, _ = pool.ask(), pool.ask(), pool.ask()
    pool.complete(first, 256 + 50)
    assert (first.estimate, first.cost) == (ESTIMATE, ESTIMATE)
    assert second.estimate == 100 + 2 * 306
    assert second.cost == second.estimate + 100
    assert pool.debts == {"a": 0, "b": 0, "_other": 0}


def test_nobody_owes_anything_where_a_slot_is_free_and_nobody_waits_when_a_request_ends_as_when_it_came():
    pool = Pool(slots=2)
    pool.complete(pool.ask(), 256 + 50)
    assert pool.debts == {"a": 0, "b": 0, "_other": 0}


@pytest.mark.parametrize("end", ["cancelled", "failed"])
@pytest.mark.parametrize(("output", "owed"), [(456, 400), (1, 0)])
def test_who_is_cut_short_owes_what_was_seen_beyond_the_estimate_and_gets_nothing_back(end, output, owed):
    pool = Pool()
    first, second, _ = pool.ask(), pool.ask(), pool.ask()
    if end == "cancelled":
        pool.dispatcher.cancel(0.0, first, seen=Used(100, output, told=False))
    else:
        pool.dispatcher.complete(0.0, first, None, seen=Used(100, output, told=False))
    assert (second.estimate, second.cost) == (ESTIMATE, ESTIMATE + owed)


def test_what_was_seen_of_nothing_is_nothing_and_what_waits_was_never_charged():
    pool = Pool()
    first, second, third, _ = pool.ask(), pool.ask(), pool.ask(), pool.ask()
    pool.dispatcher.cancel(0.0, second, seen=Used(0, 10_000))
    pool.dispatcher.cancel(0.0, first)
    assert third.cost == ESTIMATE


def test_a_pool_that_does_not_carry_charges_estimates():
    pool = Pool(carry=False)
    first, second = pool.ask(), pool.ask()
    pool.dispatcher.cancel(0.0, first, seen=Used(100, 5000))
    assert second.cost == second.estimate == ESTIMATE
    assert pool.debts == {}


def test_a_free_slot_that_finds_nobody_clears_all_debts():
    pool = Pool()
    pool.dispatcher.cancel(0.0, pool.ask(), seen=Used(100, 5000))
    assert pool.debts["a"] == 0
    assert pool.ask().cost == ESTIMATE


def test_who_comes_back_behind_the_others_has_no_credit_left_and_who_only_waits_has():
    for stays, charged in ((True, 1), (False, 102)):
        pool = Pool()
        first, ahead = pool.ask(), pool.ask("b")
        behind = [pool.ask("b") for _ in range(4)]
        again = pool.ask() if stays else None
        pool.complete(first, 1)
        pool.complete(ahead, 256)
        if again is None:
            pool.complete(behind[0], 256)
            again = pool.ask()
        for each in behind:
            pool.complete(each, 256)
        assert again.cost == charged


def test_endpoints_are_compared_by_what_requests_are_estimated_to_cost_and_not_by_what_is_owed():
    pool = Pool()
    first, second, _ = pool.ask(), pool.ask(), pool.ask()
    pool.dispatcher.cancel(0.0, first, seen=Used(100, 456))
    (endpoint,) = pool.dispatcher.endpoints
    assert endpoint.outstanding == second.estimate < second.cost


class TestEdits:
    def owing(self):
        """A pool in which `a` owes, has one request in flight and one that waits."""
        pool = Pool(slots=2)
        first, running = pool.ask(), pool.ask()
        other = pool.ask("b")
        pool.ask("b")
        pool.dispatcher.cancel(0.0, first, seen=Used(100, 456))
        assert pool.debts["a"] == 400
        assert (running.state, other.state) == (State.IN_FLIGHT, State.IN_FLIGHT)
        return pool, running

    def test_of_anything_else_leave_debts_as_they_are(self):
        pool, _ = self.owing()
        pool.dispatcher.configure(1.0, config(tenants=("a", "b", "new"), queue={"timeout": "9s"}, defaultWeight=7))
        assert pool.debts["a"] == 400

    def test_by_which_a_tenant_leaves_forget_it_with_what_still_runs_of_it(self):
        pool, running = self.owing()
        pool.dispatcher.configure(1.0, config(tenants=("b",)))
        pool.complete(running, 5000)
        assert dict(pool.dispatcher.charging.carry.debts()) == {}

    def test_that_turn_it_off_end_it_and_what_runs_is_charged_no_more_when_it_is_on_again(self):
        pool, running = self.owing()
        pool.dispatcher.configure(1.0, config(carry=False))
        assert pool.debts == {}
        pool.dispatcher.configure(2.0, config())
        pool.complete(running, 5000)
        assert pool.debts["a"] == 0


def test_the_log_tells_estimate_and_charge_where_they_differ():
    pool = Pool()
    first, _, _ = pool.ask(), pool.ask(), pool.ask()
    pool.dispatcher.cancel(0.0, first, seen=Used(100, 456))
    dispatches = [event for event in decisions.read(pool.lines).events if isinstance(event, Dispatch)]
    assert [(event.estimate, event.cost) for event in dispatches] == [(None, ESTIMATE), (ESTIMATE, ESTIMATE + 400)]


@given(ends=st.lists(st.tuples(st.integers(0, 3), st.none() | st.integers(0, 2000), st.booleans()), max_size=40))
@settings(deadline=None, max_examples=50)
def test_the_books_balance_whatever_ends_how(ends):
    """While somebody waits: what was charged is what was used, or seen or estimated, less the debt."""
    pool = Pool(slots=3)
    made = [pool.ask() for _ in range(60)]
    used = 0
    for place, output, whole in ends:
        running = [each for each in made if each.state is State.IN_FLIGHT]
        each = running[place % len(running)]
        if output is None:
            pool.dispatcher.cancel(0.0, each)
            used += each.estimate
        elif whole:
            pool.complete(each, output)
            used += 100 + 2 * output
        else:
            pool.dispatcher.cancel(0.0, each, seen=Used(100, output))
            used += max(each.estimate, 100 + 2 * output)
    in_flight = sum(each.estimate for each in made if each.state is State.IN_FLIGHT)
    assert sum(each.cost for each in made) == used + in_flight - pool.debts["a"]
