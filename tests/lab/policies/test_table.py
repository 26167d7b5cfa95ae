"""The table of policies: what is offered is whole, and each can serve the dispatcher."""

import pytest

from fairpool_lab.policies import POLICIES


@pytest.mark.parametrize("name", POLICIES)
def test_each_is_listed_by_its_name_and_says_where_it_comes_from(name):
    assert POLICIES[name].name == name
    assert "\n" not in POLICIES[name].source
    assert POLICIES[name].source


@pytest.mark.parametrize("name", POLICIES)
def test_each_dispatches_what_waits_and_charges_it_as_sfq_does(name):
    policy = POLICIES[name].factory(lambda request: request, weights={"a": 3}, default_weight=1, max_tenants=10)
    policy.advance(0.0)
    policy.arrive("a", 10)
    decision = policy.dispatch()
    policy.progressed(10, 4, 3)
    policy.finished(10)
    assert (decision.tenant, decision.request, decision.cost, decision.weight) == ("a", 10, 10, 3)
    assert decision.charge == -(-10 * 2**32 // 3)
    assert policy.dispatch() is None
    assert policy.next_change() is None
