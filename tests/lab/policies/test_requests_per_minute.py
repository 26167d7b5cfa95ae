"""A limit on requests per minute: within it arrival order, beyond it nobody goes though slots are free."""

from __future__ import annotations

from support.policies import Job, names, policy_of, queue, served_in_turn

from fairpool_lab.policies.requests_per_minute import RequestsPerMinute


def limited(**weights: int):
    policy = policy_of(RequestsPerMinute, weights, per_minute=2)
    policy.advance(30.0)
    return policy


def test_those_within_their_limits_go_in_order_of_arrival_and_the_others_wait_until_they_are():
    """Two in any minute: a's third may go a minute after its first, at 90, and its fourth a minute after its second."""
    policy = limited()
    queue(policy, "a", *(Job(f"a{number}", 9) for number in range(4)))
    queue(policy, "b", Job("b0", 1))
    assert names([policy.dispatch()]) == ["a0"]
    policy.advance(40.0)
    assert names(served_in_turn(policy)) == ["a1", "b0"]
    assert (policy.waiting, policy.next_change()) == (2, 90.0)
    policy.advance(89.9)
    assert policy.dispatch() is None
    policy.advance(90.0)
    assert names(served_in_turn(policy)) == ["a2"]
    assert policy.next_change() == 100.0
    policy.advance(100.0)
    assert names(served_in_turn(policy)) == ["a3"]
    assert policy.next_change() is None


def test_limits_are_in_proportion_to_weights_the_least_of_the_start_being_one_and_never_below_one():
    policy = policy_of(RequestsPerMinute, {"a": 300, "c": 200}, default_weight=100, per_minute=2)
    policy.reweigh("c", 1)
    for tenant in "abc":
        queue(policy, tenant, *(Job(f"{tenant}{number}", 1) for number in range(9)))
    assert [name[0] for name in names(served_in_turn(policy))] == ["a"] * 6 + ["b"] * 2 + ["c"]


def test_a_new_default_weight_changes_the_limits_of_those_who_have_none_of_their_own():
    policy = limited(a=1)
    for tenant in "ab":
        queue(policy, tenant, *(Job(f"{tenant}{number}", 1) for number in range(9)))
    assert len(served_in_turn(policy)) == 4
    policy.reweigh_default(2)
    assert [name[0] for name in names(served_in_turn(policy))] == ["b"] * 2


def test_a_new_weight_counts_at_once():
    policy = limited()
    queue(policy, "a", *(Job(f"a{number}", 1) for number in range(5)))
    assert len(served_in_turn(policy)) == 2
    policy.reweigh("a", 2)
    assert len(served_in_turn(policy)) == 2
    assert policy.next_change() == 90.0


def test_a_place_that_is_given_up_goes_to_who_stands_behind():
    policy = limited()
    queue(policy, "a", Job("a0", 1))
    queue(policy, "b", Job("b0", 1))
    queue(policy, "a", Job("a1", 1))
    policy.remove("a", Job("a0", 1))
    assert names(served_in_turn(policy)) == ["b0", "a1"]


def test_nothing_is_held_back_while_nobody_waits():
    policy = limited()
    queue(policy, "a", Job("a0", 1), Job("a1", 1), Job("a2", 1))
    served_in_turn(policy)
    policy.remove("a", Job("a2", 1))
    assert policy.next_change() is None
