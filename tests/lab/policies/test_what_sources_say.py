"""What the sources say of their orders, held against them: counters, throughput and deficits stay in their ranges."""

from __future__ import annotations

from collections import Counter
from itertools import combinations

from hypothesis import Phase, find, given, settings
from hypothesis import strategies as st
from support.policies import Job, policy_of, queue, served_in_turn

from fairpool_gateway.sfq import Q
from fairpool_lab.measures.fluid import Fluid
from fairpool_lab.policies.deficit_longest_prefix import DeficitLongestPrefixMatch
from fairpool_lab.policies.deficit_round_robin import DeficitRoundRobin
from fairpool_lab.policies.round_robin import RoundRobin
from fairpool_lab.policies.stride import Stride
from fairpool_lab.policies.virtual_token_counter import LeastCounterFirst, VirtualTokenCounter
from fairpool_lab.policies.weighted_fair_queueing import WeightedFairQueueing

SLOTS = 3
LONGEST = 50
"""Tokens, of prompts and of answers."""

arrivals = st.tuples(st.sampled_from("abc"), st.integers(1, LONGEST), st.integers(0, LONGEST))
steps = st.integers(1, 2 * LONGEST)
"""A step: so many tokens for each request in flight."""
histories = st.lists(arrivals | steps, max_size=120)


def counters_after_each_step(kind, history):
    """Several requests at a time, each generating as the steps go, and the counters of those who wait."""
    policy, running = policy_of(kind), {}
    for number, event in enumerate(history):
        if isinstance(event, tuple):
            tenant, prompt, answer = event
            policy.arrive(tenant, Job(f"{number}", prompt, answer))
        else:
            for job in list(running):
                tokens = min(event, job.output_tokens - running[job])
                policy.progressed(job, 0, tokens)
                running[job] += tokens
                if running[job] == job.output_tokens:
                    del running[job]
                    policy.finished(job)
        while len(running) < SLOTS and (decision := policy.dispatch()) is not None:
            running[decision.request] = 0
        yield [meter.meter for meter in policy.meters()]


def far_apart(kind, history) -> bool:
    """Whether counters ever were further apart than one prompt and all answers that fit in the slots."""
    bound = (LONGEST + 2 * SLOTS * LONGEST) * Q
    return any(
        max(counters) - min(counters) > bound for counters in counters_after_each_step(kind, history) if counters
    )


class TestVirtualTokenCounter:
    """The counters of those who wait stay together, whoever comes and goes: the invariant that its bound rests on."""

    @given(histories)
    @settings(max_examples=60)
    def test_counters_of_backlogged_tenants_stay_together(self, history):
        assert not far_apart(VirtualTokenCounter, history)

    def test_without_the_lift_they_do_not(self):
        alone = [("a", LONGEST, LONGEST), 2 * LONGEST] * 20
        assert far_apart(LeastCounterFirst, [*alone, *[("a", 1, LONGEST)] * 5, *[("b", 1, LONGEST)] * 5])
        assert not far_apart(VirtualTokenCounter, [*alone, *[("a", 1, LONGEST)] * 5, *[("b", 1, LONGEST)] * 5])


class TestStride:
    """The throughput of any two tenants is never more than one turn from what their tickets say."""

    @staticmethod
    def greatest_error(kind, weights):
        policy = policy_of(kind, weights)
        for tenant in weights:
            queue(policy, tenant, *(Job(f"{tenant}{number}", 1) for number in range(120)))
        went, worst = dict.fromkeys(weights, 0), 0.0
        for decision in served_in_turn(policy, 120):
            went[decision.tenant] += 1
            for i, j in combinations(weights, 2):
                due = (went[i] + went[j]) * weights[i] / (weights[i] + weights[j])
                worst = max(worst, abs(went[i] - due))
        return worst

    weights = st.fixed_dictionaries({tenant: st.integers(1, 20) for tenant in "abc"})

    @given(weights)
    @settings(max_examples=40)
    def test_pairs_are_within_a_turn_of_their_due(self, weights):
        assert self.greatest_error(Stride, weights) <= 1 + 1e-9

    def test_strides_that_ignore_tickets_are_caught(self):
        class Alike(Stride):
            def weight(self, tenant):
                return 1

        def caught(weights):
            return self.greatest_error(Alike, weights) > 1

        find(self.weights, caught, settings=settings(phases=[Phase.generate], derandomize=True))


WEIGHTS = {"a": 1, "b": 2, "c": 5}


class TestWeightedFairQueueing:
    """Theorem 2 of Parekh and Gallager: nobody falls further behind the fluid server than the greatest request."""

    @staticmethod
    def greatest_lag(kind, history):
        """In tokens; None stands for a dispatch."""
        policy, fluid, received, worst = policy_of(kind, WEIGHTS), Fluid(), Counter(), 0.0
        for number, event in enumerate([*history, *[None] * len(history)]):
            if event is not None:
                tenant, cost = event
                policy.arrive(tenant, Job(f"{number}", cost))
                fluid.arrive(tenant, cost, WEIGHTS[tenant])
            elif (decision := policy.dispatch()) is not None:
                fluid.serve(decision.cost)
                received[decision.tenant] += decision.cost
                worst = max(worst, *(fluid.entitled(tenant) - received[tenant] for tenant in WEIGHTS))
        return worst

    histories = st.lists(st.none() | st.tuples(st.sampled_from("abc"), st.integers(1, LONGEST)), max_size=60)

    @given(histories)
    @settings(max_examples=60)
    def test_nobody_is_further_behind_than_a_request(self, history):
        assert self.greatest_lag(WeightedFairQueueing, history) <= LONGEST + 1e-6

    def test_round_robin_leaves_a_tenant_of_light_requests_further_behind(self):
        history = [("a", LONGEST), ("c", 10)] * 30
        assert self.greatest_lag(WeightedFairQueueing, history) <= LONGEST
        assert self.greatest_lag(RoundRobin, history) > 2 * LONGEST


costs = st.lists(st.tuples(st.sampled_from("abc"), st.integers(1, LONGEST)), min_size=1, max_size=60)


def of_costs(kind, arrivals, quantum):
    policy = policy_of(kind, quantum=quantum)
    for number, (tenant, cost) in enumerate(arrivals):
        policy.arrive(tenant, Job(f"{number}", cost))
    return policy


class TestDeficitRoundRobin:
    """Lemma 1: what a tenant has saved up between its visits is never negative, and less than the greatest request."""

    @staticmethod
    def holds(kind, arrivals, quantum):
        policy, held = of_costs(kind, arrivals, quantum), True
        while policy.dispatch() is not None:
            for tenant, deficit in policy._deficits.items():
                held &= deficit >= 0 and (tenant == policy._visited or deficit < LONGEST)
        return held

    @given(costs, st.integers(1, 2 * LONGEST))
    @settings(max_examples=60)
    def test_deficits_stay_in_their_range(self, arrivals, quantum):
        assert self.holds(DeficitRoundRobin, arrivals, quantum)

    def test_a_quantum_for_each_request_is_caught(self):
        class EachTime(DeficitRoundRobin):
            def took(self, decision):
                super().took(decision)
                self._visited = None

        def caught(arrivals):
            return not self.holds(EachTime, arrivals, LONGEST)

        find(costs, caught, settings=settings(phases=[Phase.generate], derandomize=True))


class TestDeficitLongestPrefixMatch:
    """Nobody has more left than a quantum, or owes as much as the greatest request."""

    @staticmethod
    def holds(kind, arrivals, quantum):
        policy, held = of_costs(kind, arrivals, quantum), True
        while policy.dispatch() is not None:
            held &= all(-LONGEST < deficit <= quantum for deficit in policy._deficits.values())
        return held

    @given(costs, st.integers(1, 2 * LONGEST))
    @settings(max_examples=60)
    def test_deficits_stay_in_their_range(self, arrivals, quantum):
        assert self.holds(DeficitLongestPrefixMatch, arrivals, quantum)

    def test_a_quantum_for_those_who_have_something_left_is_caught(self):
        class ForAll(DeficitLongestPrefixMatch):
            def _refill(self):
                for tenant in self._deficits:
                    self._deficits[tenant] += self._grant(tenant)

        def caught(arrivals):
            return not self.holds(ForAll, arrivals, LONGEST)

        find(costs, caught, settings=settings(phases=[Phase.generate], derandomize=True))
