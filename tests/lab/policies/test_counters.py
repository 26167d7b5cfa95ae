"""Orders that count what was served: LCF, VTC with and without prediction, CFS, Equinox."""

from __future__ import annotations

import pytest
from support.policies import Job, names, policy_of, queue, serve, served_in_turn, tenants

from fairpool_gateway.sfq import Q
from fairpool_lab.policies import Policy
from fairpool_lab.policies.completely_fair import CompletelyFair
from fairpool_lab.policies.equinox import Equinox
from fairpool_lab.policies.virtual_token_counter import (
    LeastCounterFirst,
    VirtualTokenCounter,
    VirtualTokenCounterOracle,
    VirtualTokenCounterPredicting,
)


def jobs(prefix: str, count: int, input_tokens: int, output_tokens: int) -> list[Job]:
    return [Job(f"{prefix}{number}", input_tokens, output_tokens) for number in range(count)]


def counters(policy: Policy[Job]) -> dict[str, float]:
    """What is counted for each tenant that waits, in tokens per weight."""
    return {meter.tenant: meter.meter / Q for meter in policy.meters()}


class TestVirtualTokenCounter:
    def test_input_counts_at_dispatch_and_each_output_token_when_it_is_generated(self):
        """Algorithm 2 with its weights 1 and 2: 10 input tokens, then 3 of output, then 1."""
        policy = policy_of(VirtualTokenCounter)
        queue(policy, "a", *jobs("a", 2, 10, 4))
        job = policy.dispatch().request
        assert counters(policy) == {"a": 10}
        policy.progressed(job, 10, 3)
        assert counters(policy) == {"a": 16}
        policy.progressed(job, 0, 1)
        policy.finished(job)
        assert counters(policy) == {"a": 18}

    def test_what_is_dispatched_together_is_chosen_by_input_alone(self):
        """Two slots at once. a: 0 -> 6, b: 0 -> 1 -> 2: b goes twice, though its answers are the longer ones."""
        policy = policy_of(VirtualTokenCounter)
        queue(policy, "a", *jobs("a", 3, 6, 1))
        queue(policy, "b", *jobs("b", 3, 1, 100))
        running = [policy.dispatch() for _ in range(3)]
        assert tenants(running) == "abb"
        for decision in running:
            serve(policy, decision.request)
        assert counters(policy) == {"a": 8, "b": 402}

    def test_counters_are_divided_by_weights(self):
        policy = policy_of(VirtualTokenCounter, {"a": 2, "b": 1})
        queue(policy, "a", *jobs("a", 9, 2, 1))
        queue(policy, "b", *jobs("b", 9, 2, 1))
        assert tenants(served_in_turn(policy, 6)) == "abaaba"

    def test_who_joins_is_lifted_to_the_least_counter_of_those_who_wait(self):
        policy = policy_of(VirtualTokenCounter)
        queue(policy, "a", *jobs("a", 5, 10, 0))
        queue(policy, "b", *jobs("b", 5, 15, 0))
        served_in_turn(policy, 3)
        queue(policy, "c", *jobs("c", 5, 1, 0))
        assert counters(policy) == {"a": 20, "b": 15, "c": 15}

    def test_if_nobody_waits_who_joins_is_lifted_to_whoever_left_last(self):
        policy = policy_of(VirtualTokenCounter)
        queue(policy, "a", *jobs("a", 1, 10, 0))
        queue(policy, "b", *jobs("b", 1, 3, 0))
        assert tenants(served_in_turn(policy)) == "ab"
        queue(policy, "c", *jobs("c", 1, 1, 0))
        assert counters(policy) == {"c": 3}

    def test_a_counter_above_the_lift_stays(self):
        policy = policy_of(VirtualTokenCounter)
        queue(policy, "a", *jobs("a", 1, 10, 0))
        queue(policy, "b", *jobs("b", 2, 3, 0))
        served_in_turn(policy, 2)
        queue(policy, "a", *jobs("A", 1, 10, 0))
        assert counters(policy) == {"a": 10, "b": 3}


class TestLeastCounterFirst:
    def test_who_was_idle_holds_up_everybody_else_until_it_has_caught_up(self):
        """a had 10 x 5 alone. Then b has 10 in a row under LCF; under VTC they take turns."""
        for kind, order in ((LeastCounterFirst, "b" * 10 + "ab"), (VirtualTokenCounter, "ab" * 6)):
            policy = policy_of(kind)
            queue(policy, "a", *jobs("a", 30, 5, 0))
            served_in_turn(policy, 10)
            queue(policy, "b", *jobs("b", 30, 5, 0))
            assert tenants(served_in_turn(policy, 12)) == order


class TestPrediction:
    def test_an_oracle_counts_the_whole_request_at_dispatch_and_nothing_after(self):
        policy = policy_of(VirtualTokenCounterOracle)
        queue(policy, "a", *jobs("a", 2, 10, 4))
        job = policy.dispatch().request
        assert counters(policy) == {"a": 18}
        serve(policy, job)
        assert counters(policy) == {"a": 18}

    def test_what_exceeds_the_prediction_counts_as_it_comes_and_what_falls_short_is_taken_back(self):
        """After an answer of 4 tokens 4 are predicted. The next has 6, which makes 4.4: 4 again, of which 1 comes."""
        policy = policy_of(VirtualTokenCounterPredicting)
        first, longer, shorter, last = Job("first", 0, 4), Job("longer", 0, 6), Job("shorter", 0, 1), Job("last", 0, 1)
        queue(policy, "a", first, longer, shorter, last)
        served_in_turn(policy, 1)
        assert counters(policy) == {"a": 8}
        policy.dispatch()
        assert counters(policy) == {"a": 16}
        policy.progressed(longer, 0, 4)
        assert counters(policy) == {"a": 16}
        policy.progressed(longer, 0, 2)
        policy.finished(longer)
        assert counters(policy) == {"a": 20}
        policy.dispatch()
        assert counters(policy) == {"a": 28}
        policy.progressed(shorter, 0, 1)
        policy.finished(shorter)
        assert counters(policy) == {"a": 22}

    def test_the_prediction_is_a_moving_average_of_the_tenants_answers(self):
        """100, then 50 makes it 100 - 50/5 = 90, and 6 makes it 90 - 84/5 = 73.2, so 73 are predicted."""
        policy = policy_of(VirtualTokenCounterPredicting)
        answers = [Job(f"{length}", 0, length) for length in (100, 50, 6)]
        queue(policy, "a", *answers, Job("next", 0, 9), Job("behind", 0, 9))
        served_in_turn(policy, len(answers))
        before = counters(policy)["a"]
        policy.dispatch()
        assert counters(policy)["a"] - before == 2 * 73


class TestCompletelyFair:
    def test_whoever_has_used_least_goes_next_and_use_counts_as_it_happens(self):
        """a uses 3 a request, b 1, with one slot: the order of the article's example (§2.7), learned from use alone."""
        policy = policy_of(CompletelyFair)
        queue(policy, "a", *jobs("a", 9, 3, 0))
        queue(policy, "b", *jobs("b", 9, 1, 0))
        assert tenants(served_in_turn(policy, 8)) == "abbbabbb"

    def test_what_has_not_run_yet_does_not_count(self):
        """Before anything was computed a is still the least, and takes both slots."""
        policy = policy_of(CompletelyFair)
        queue(policy, "a", *jobs("a", 9, 1000, 0))
        queue(policy, "b", *jobs("b", 9, 1, 0))
        assert tenants([policy.dispatch(), policy.dispatch()]) == "aa"

    def test_use_is_divided_by_weight(self):
        policy = policy_of(CompletelyFair, {"a": 2, "b": 1})
        queue(policy, "a", *jobs("a", 9, 2, 1))
        queue(policy, "b", *jobs("b", 9, 2, 1))
        assert tenants(served_in_turn(policy, 6)) == "abaaba"

    def test_who_wakes_is_placed_at_the_least_vruntime_of_those_who_can_run(self):
        """a has used 50 and b, who came when a was at 20, is at 20 + 40. c starts at 50."""
        policy = policy_of(CompletelyFair)
        queue(policy, "a", *jobs("a", 9, 10, 0))
        served_in_turn(policy, 2)
        queue(policy, "b", *jobs("b", 9, 40, 0))
        served_in_turn(policy, 4)
        queue(policy, "c", *jobs("c", 9, 1, 0))
        assert counters(policy) == {"a": 50, "b": 60, "c": 50}

    def test_who_waits_no_more_but_runs_is_not_asleep(self):
        """b's only request runs while a has used 100: b comes back at what it has used, 30, not at a's 100."""
        policy = policy_of(CompletelyFair)
        queue(policy, "b", *jobs("b", 1, 30, 0))
        running = policy.dispatch().request
        queue(policy, "a", *jobs("a", 12, 10, 0))
        served_in_turn(policy, 10)
        policy.progressed(running, 30, 0)
        queue(policy, "b", *jobs("B", 1, 1, 0))
        assert counters(policy) == {"a": 100, "b": 30}
        policy.finished(running)


class TestEquinox:
    def policy(self, **weights: int) -> Policy[Job]:
        policy = policy_of(Equinox, weights)
        policy.advance(0.0)
        return policy

    def test_alone_and_at_once_a_request_counts_what_it_costs(self):
        """No wait, and all that was ever busy is: 0.7 x 10 + 0.3 x 10."""
        policy = self.policy()
        queue(policy, "a", *jobs("a", 2, 10, 0))
        policy.dispatch()
        assert counters(policy) == {"a": 10}

    def test_service_that_came_late_counts_for_less(self):
        """A wait of 3 s for 1 s of service: 0.7 x 10 x 1/4 + 0.3 x 10 = 4.75, once it is known."""
        policy = self.policy()
        queue(policy, "a", *jobs("a", 2, 10, 0))
        policy.advance(3.0)
        job = policy.dispatch().request
        assert counters(policy) == {"a": 10}
        policy.progressed(job, 10, 0)
        policy.advance(4.0)
        policy.finished(job)
        assert counters(policy) == {"a": pytest.approx(4.75)}

    def test_latency_is_predicted_by_the_time_that_tokens_took_so_far(self):
        """10 tokens took 1 s. The next waits 1 s, and 20 tokens will take 2: 0.7 x 20 x 2/3 + 0.3 x 20 more."""
        policy = self.policy()
        queue(policy, "a", Job("first", 10), Job("second", 20), Job("third", 20))
        job = policy.dispatch().request
        policy.progressed(job, 10, 0)
        policy.advance(1.0)
        policy.finished(job)
        policy.dispatch()
        assert counters(policy) == {"a": pytest.approx(10 + 0.7 * 20 * 2 / 3 + 0.3 * 20)}

    def test_service_beside_idle_slots_counts_for_less(self):
        """Two were in flight once, now one is: the second term is halved."""
        policy = self.policy()
        queue(policy, "a", *jobs("a", 4, 10, 0))
        both = [policy.dispatch().request for _ in range(2)]
        for job in both:
            serve(policy, job)
        before = counters(policy)["a"]
        policy.dispatch()
        assert counters(policy)["a"] - before == pytest.approx(0.7 * 10 + 0.3 * 10 / 2)

    def test_scores_are_divided_by_weights_and_whoever_joins_is_lifted(self):
        policy = self.policy(a=2)
        queue(policy, "a", *jobs("a", 2, 10, 0))
        policy.dispatch()
        queue(policy, "b", *jobs("b", 2, 10, 0))
        assert counters(policy) == {"a": 5, "b": 5}


def test_a_request_that_was_cancelled_counts_what_it_generated():
    for kind, counted in ((VirtualTokenCounter, 10 + 2), (VirtualTokenCounterOracle, 10 + 2), (CompletelyFair, 10 + 2)):
        policy = policy_of(kind)
        queue(policy, "a", *jobs("a", 2, 10, 500))
        job = policy.dispatch().request
        policy.progressed(job, 10, 1)
        policy.finished(job)
        assert counters(policy) == {"a": counted}
        assert names(served_in_turn(policy)) == ["a1"]
