"""Which orders keep charges together while tenants stay backlogged, and which do not; both ways by test.

With one slot, each request computed before the next is chosen, no tenant may get further ahead of another than the sum
of their greatest charges, plus what the order's own source allows it: a quantum between DRR's visits, two of DLPM's.
LCF is as good as VTC here; what the lift is for shows when tenants come and go (`test_counters`).
"""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from support.policies import Job, policy_of

from fairpool_gateway.decision_log import DecisionLog
from fairpool_gateway.sfq import Q, charge
from fairpool_lab import decisions
from fairpool_lab.measures import gap
from fairpool_lab.policies import POLICIES, PolicyFactory

ALLOWED = {
    **dict.fromkeys(("sfq", "wfq", "lcf", "vtc", "vtc-predict", "vtc-oracle", "cfs"), 0),
    "drr": 1024,
    "dlpm": 2 * 4096,
}
"""Tokens per weight beyond the greatest charges, of the orders that keep a bound."""

GROWTH = {**dict.fromkeys(("arrival-order", "rpm", "round-robin", "stride"), 1.9), "equinox": 1.1}
"""Of the others, by how much the gap grows at least when the tenants stay backlogged for twice as long."""

SECONDS_PER_TOKEN = 0.001


def excess(factory: PolicyFactory, costs: dict[str, list[int]], weights: dict[str, int]) -> float:
    """By how many tokens per weight the greatest gap of any pair exceeds the greatest charges of the two.

    All requests wait from the start, the tenants' in turn, so that all stay backlogged until a queue is empty.
    """
    policy, lines = policy_of(factory, weights), []
    log = DecisionLog(lines.append, pool="miniature", weights=weights, default_weight=1)
    greatest = {tenant: max(charge(cost, weights[tenant]) for cost in costs[tenant]) for tenant in costs}
    now = 0.0
    for number in range(max(map(len, costs.values()))):
        for tenant, queue in costs.items():
            if number < len(queue):
                job = Job(f"{tenant}{number}", queue[number])
                policy.arrive(tenant, job)
                log.arrive(now, tenant, weights[tenant], job.name, job.cost)
    while policy.waiting:
        if (decision := policy.dispatch()) is None:
            policy.advance(now := policy.next_change())
            continue
        log.dispatch(now, decision, decision.request.name, policy.v, "e0")
        policy.progressed(decision.request, decision.request.input_tokens, 0)
        policy.advance(now := now + SECONDS_PER_TOKEN * decision.cost)
        policy.finished(decision.request)
    worst = max(
        pair.greatest.gap - greatest[pair.greatest.ahead] - greatest[pair.greatest.behind]
        for pair in gap.measure(decisions.read(lines).events).pairs
    )
    return worst / Q


UNEQUAL = {"a": [1000] * 300, "b": [100] * 300}
EQUAL_WEIGHTS = {"a": 1, "b": 1}


@pytest.mark.parametrize("name", ALLOWED)
@given(
    costs=st.fixed_dictionaries(dict.fromkeys("abc", st.lists(st.integers(1, 3000), min_size=1, max_size=25))),
    weights=st.fixed_dictionaries(dict.fromkeys("abc", st.integers(1, 5))),
)
@example(costs=UNEQUAL, weights=EQUAL_WEIGHTS)
@settings(max_examples=40)
def test_these_keep_a_bound(name, costs, weights):
    assert excess(POLICIES[name].factory, costs, weights) <= ALLOWED[name]


@pytest.mark.parametrize("name", GROWTH)
def test_these_do_not(name):
    """Equinox's gap grows with the logarithm: the longer all wait, the less a request's own size discounts it."""
    half = {tenant: costs[:150] for tenant, costs in UNEQUAL.items()}
    after_half, after_all = (excess(POLICIES[name].factory, costs, EQUAL_WEIGHTS) for costs in (half, UNEQUAL))
    assert after_half > 1000
    assert after_all > GROWTH[name] * after_half


def test_every_policy_is_one_or_the_other():
    assert sorted(POLICIES) == sorted([*ALLOWED, *GROWTH])
