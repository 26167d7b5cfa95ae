"""The table of policies: what is offered is whole, and each can serve the dispatcher."""

import pytest

from fairpool_lab.policies import POLICIES, Unmoved, named
from fairpool_lab.policies.policy import Hearing


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


@pytest.mark.parametrize("name", POLICIES)
def test_whoever_need_not_be_told_does_nothing_about_it_and_nobody_else_says_so(name):
    kind = POLICIES[name].factory
    deaf = all(
        getattr(kind, method) is getattr(Hearing, method)
        for method in ("advance", "progressed", "finished", "next_change")
    )
    assert issubclass(kind, Unmoved) == deaf


@pytest.mark.parametrize("name", POLICIES)
def test_each_is_found_by_its_name(name):
    assert named(name) is POLICIES[name]


@pytest.mark.parametrize("name", [name for name, listed in POLICIES.items() if listed.setting])
def test_a_number_behind_the_name_is_its_setting(name):
    found = named(f"{name}:7")
    assert (found.name, found.source) == (f"{name}:7", POLICIES[name].source)
    policy = found.factory(lambda request: request, weights={}, default_weight=1, max_tenants=10)
    assert getattr(policy, f"_{POLICIES[name].setting}") == 7
    assert POLICIES[name].usage == f"{name}[:{POLICIES[name].setting.upper()}]"


@pytest.mark.parametrize("name", ["lottery", "sfq:7", "rpm:", "rpm:0", "rpm:-1", "rpm:1.5", "drr:much", ""])
def test_anything_else_is_none(name):
    assert named(name) is None
