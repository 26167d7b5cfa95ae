"""SFQ with carry: what a tenant was charged too little or too much is in its next charges, as DESIGN §5 has it."""

from __future__ import annotations

from support.policies import SIGHT, Job, queue, serve

from fairpool_lab.policies.carrying import Carrying

ESTIMATE = 100


def carrying():
    """A pool that takes every request for one of a hundred tokens."""
    return Carrying(lambda _: ESTIMATE, weights={}, default_weight=1, max_tenants=100, sight=SIGHT)


def jobs(*costs):
    return [Job(f"j{number}", cost) for number, cost in enumerate(costs)]


def leave(policy, job, generated):
    """The job's client leaves when so many tokens of its answer have come."""
    policy.progressed(job, job.input_tokens, generated)
    policy.finished(job)


def test_what_was_not_charged_is_charged_next_and_no_more_than_once():
    policy = carrying()
    queue(policy, "a", *jobs(130, 100, 100))
    costs = []
    for _ in range(3):
        decision = policy.dispatch()
        serve(policy, decision.request)
        costs.append(decision.cost)
    assert costs == [100, 130, 100]


def test_what_was_charged_too_much_is_given_back_down_to_one_token():
    policy = carrying()
    queue(policy, "a", *jobs(10, 10, 100, 100))
    running = [policy.dispatch(), policy.dispatch()]
    for decision in running:
        serve(policy, decision.request)
    assert [policy.dispatch().cost, policy.dispatch().cost] == [1, 100 - 81]


def test_a_charge_is_at_most_the_estimate_and_the_greatest_that_was_ever_used():
    policy = carrying()
    queue(policy, "a", *jobs(500, 300, 100, 100))
    running = [policy.dispatch(), policy.dispatch()]
    for decision in running:
        serve(policy, decision.request)
    assert policy.dispatch().cost == 100 + 500
    assert policy.dispatch().cost == 100 + 100


def test_who_leaves_owes_what_it_took_beyond_the_estimate_and_gets_nothing_back():
    policy = carrying()
    queue(policy, "a", Job("long", 50, 300), Job("short", 50, 300), *jobs(100, 100))
    leave(policy, policy.dispatch().request, 100)
    short = policy.dispatch()
    assert short.cost == 50 + 2 * 100
    leave(policy, short.request, 1)
    assert policy.dispatch().cost == 100


def test_a_free_slot_that_finds_nobody_clears_what_is_owed():
    policy = carrying()
    queue(policy, "a", *jobs(500))
    serve(policy, policy.dispatch().request)
    assert policy.dispatch() is None
    queue(policy, "a", Job("next", 100))
    assert policy.dispatch().cost == 100


def test_who_comes_back_behind_the_others_comes_without_credit_but_with_its_debt():
    for used, charged in ((10, 100), (150, 150)):
        policy = carrying()
        queue(policy, "a", *jobs(used))
        queue(policy, "b", *(Job(f"b{number}", 100) for number in range(9)))
        serve(policy, policy.dispatch().request)
        for _ in range(4):
            serve(policy, policy.dispatch().request)
        queue(policy, "a", Job("again", 100))
        decisions = [policy.dispatch() for _ in range(2)]
        assert [decision.cost for decision in decisions if decision.tenant == "a"] == [charged]


def test_a_request_that_waits_no_more_is_forgotten():
    policy = carrying()
    queue(policy, "a", *jobs(10, 20))
    policy.remove("a", Job("j0", 10))
    serve(policy, policy.dispatch().request)
    assert policy.dispatch() is None
