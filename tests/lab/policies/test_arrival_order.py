"""Order of arrival behind the dispatcher's protocol: first come, first served, charged like the fair order."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairpool_gateway.ordering import Ordering, OrderingFactory
from fairpool_gateway.sfq import Decision, Meter, Scheduler, charge
from fairpool_lab.policies.arrival_order import ArrivalOrder

MADE_BY: OrderingFactory[int] = ArrivalOrder


def order(**weights: int) -> Ordering[int]:
    return MADE_BY(lambda request: 10 * request, weights=weights, default_weight=100, max_tenants=10)


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(1, 1000)), max_size=20))
def test_requests_leave_as_they_came_whatever_the_weights(arrivals):
    first_come = order(a=1, b=1000)
    for number, (tenant, _) in enumerate(arrivals):
        first_come.arrive(tenant, number)
    decisions = [first_come.dispatch() for _ in arrivals]
    assert [(decision.tenant, decision.request) for decision in decisions] == [
        (tenant, number) for number, (tenant, _) in enumerate(arrivals)
    ]
    assert first_come.dispatch() is None
    assert (first_come.v, first_come.waiting) == (0, 0)


def test_charges_are_those_of_the_fair_order():
    for kind in (ArrivalOrder, Scheduler):
        made = kind(lambda request: 10 * request, weights={"a": 4})
        made.arrive("a", 7)
        decision = made.dispatch()
        assert decision == Decision("a", 7, 4, 70, charge(70, 4), 0)


def test_a_removed_request_is_passed_over():
    first_come = order()
    for request in (1, 2, 3):
        assert first_come.arrive("a", request) == "a"
    first_come.remove("a", 2)
    assert first_come.waiting == 2
    assert [first_come.dispatch().request for _ in range(2)] == [1, 3]


@pytest.mark.parametrize(("tenant", "request_"), [("a", 2), ("b", 1)])
def test_what_does_not_wait_cannot_be_removed(tenant, request_):
    first_come = order()
    first_come.arrive("a", 1)
    with pytest.raises(KeyError):
        first_come.remove(tenant, request_)
    assert first_come.waiting == 1


def test_a_new_weight_counts_from_the_next_charge():
    first_come = order(a=2)
    for request in (1, 2, 3, 4):
        first_come.arrive("a", request)
    weights = [first_come.dispatch().weight]
    first_come.reweigh("a", 5)
    weights.append(first_come.dispatch().weight)
    first_come.reweigh("a", None)
    weights.append(first_come.dispatch().weight)
    first_come.reweigh_default(7)
    weights.append(first_come.dispatch().weight)
    assert weights == [2, 5, 100, 7]


def test_only_who_waits_is_seen():
    first_come = order(a=2)
    first_come.arrive("a", 1)
    first_come.arrive("b", 2)
    first_come.arrive("b", 3)
    first_come.dispatch()
    assert list(first_come.meters()) == [Meter("b", 100, 0, 2)]
    assert first_come.identify("c") == "c"
