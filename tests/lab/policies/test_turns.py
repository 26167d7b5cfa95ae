"""Orders that give turns: round robin, stride scheduling, deficit round robin."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.policies import Job, names, policy_of, queue, served_in_turn, tenants

from fairpool_lab.policies.deficit_round_robin import DeficitRoundRobin
from fairpool_lab.policies.round_robin import RoundRobin
from fairpool_lab.policies.stride import Stride


def of(tenant: str, *costs: int) -> list[Job]:
    return [Job(f"{tenant}{number}:{cost}", cost) for number, cost in enumerate(costs)]


class TestRoundRobin:
    def test_each_has_one_request_in_turn_whatever_it_costs(self):
        policy = policy_of(RoundRobin)
        queue(policy, "a", *of("a", 100, 100, 100))
        queue(policy, "b", *of("b", 1))
        queue(policy, "c", *of("c", 7, 7))
        assert tenants(served_in_turn(policy)) == "abcaca"

    def test_who_comes_back_goes_to_the_end_of_the_round(self):
        policy = policy_of(RoundRobin)
        queue(policy, "a", *of("a", 1))
        queue(policy, "b", *of("b", 1, 1))
        served_in_turn(policy, 1)
        queue(policy, "a", *of("A", 1))
        assert tenants(served_in_turn(policy)) == "bab"


class TestStride:
    def test_tickets_3_2_1_as_in_figure_2_of_the_source(self):
        """Strides of 2, 3 and 6; passes start there, and ties go by name.

        | turn | 1 | 2 | 3 | 4 | 5 | 6 |
        |------|---|---|---|---|---|---|
        | a    | 2*| 4 | 4*| 6*| 8 | 8 |
        | b    | 3 | 3*| 6 | 6 | 6*| 9 |
        | c    | 6 | 6 | 6 | 6 | 6 | 6*|
        """
        policy = policy_of(Stride, {"a": 3, "b": 2, "c": 1}, stride1=6)
        for tenant in "abc":
            queue(policy, tenant, *of(tenant, *[1] * 20))
        decisions = served_in_turn(policy, 6)
        assert tenants(decisions) == "abaabc"
        assert [decision.start_tag for decision in decisions] == [2, 3, 4, 6, 6, 6]

    def test_a_turn_is_a_request_whatever_it_costs(self):
        policy = policy_of(Stride, {"a": 2, "b": 1}, stride1=2)
        queue(policy, "a", *of("a", *[100] * 20))
        queue(policy, "b", *of("b", *[1] * 20))
        assert tenants(served_in_turn(policy, 9)).count("a") == 6

    def test_who_leaves_comes_back_as_far_from_the_global_pass_as_it_left_it(self):
        """Strides of 4 with stride1 = 4; the global pass moves by 4/2 = 2 a turn while both compete, by 4 alone.

        a: 4 -> 8 at global 2, and leaves 6 ahead. b alone: 4, 8, 12 at global 6, 10, 14. a is back at 14 + 6 = 20.
        """
        policy = policy_of(Stride, stride1=4)
        queue(policy, "a", *of("a", 1))
        queue(policy, "b", *of("b", *[1] * 9))
        assert tenants(served_in_turn(policy, 4)) == "abbb"
        queue(policy, "a", *of("A", 1, 1))
        assert {meter.tenant: meter.meter for meter in policy.meters()} == {"a": 20, "b": 16}
        assert tenants(served_in_turn(policy, 4)) == "baba"

    def test_more_tickets_bring_the_next_turn_nearer_in_proportion(self):
        """stride1 = 12: with 1 ticket a's stride is 12, with 3 it is 4. A turn takes a to 24, and the global pass to 6.

        So a is 18 ahead of it, and 6 ahead once it has three times the tickets.
        """
        policy = policy_of(Stride, {"a": 1, "b": 1}, stride1=12)
        for tenant in "ab":
            queue(policy, tenant, *of(tenant, *[1] * 9))
        served_in_turn(policy, 1)
        policy.reweigh("a", 3)
        assert {meter.tenant: meter.meter for meter in policy.meters()} == {"a": 6 + 6, "b": 12}


class TestDeficitRoundRobin:
    def test_figures_2_and_3_of_the_source(self):
        """Four queues and a quantum of 500; the first figure shows them, the second the first queue after its visit.

        Round 1: #1 sends 200 and has 300 left, too little for 750; #2 sends 500; #3 sends 100, 400 left; #4 180, 320.
        Round 2: #1 has 800: 750, then 20; #2 500; #3 has 900: 600, 200; #4 has 820: 700, 50.
        """
        policy = policy_of(DeficitRoundRobin, quantum=500)
        for tenant, costs in {"1": (200, 750, 20), "2": (500, 500), "3": (100, 600, 200), "4": (180, 700, 50)}.items():
            queue(policy, tenant, *of(tenant, *costs))
        assert names(served_in_turn(policy)) == [
            *("10:200", "20:500", "30:100", "40:180"),
            *("11:750", "12:20", "21:500", "31:600", "32:200", "41:700", "42:50"),
        ]

    def test_what_is_left_of_an_empty_queue_is_forfeited(self):
        """a leaves 400 of 500 behind. Back at the end of the ring it has 500, not 900, when its turn comes."""
        policy = policy_of(DeficitRoundRobin, quantum=500)
        queue(policy, "a", *of("a", 100))
        queue(policy, "b", *of("b", 500, 500, 500))
        served_in_turn(policy, 1)
        queue(policy, "a", *of("A", 900))
        assert names(served_in_turn(policy)) == ["b0:500", "b1:500", "A0:900", "b2:500"]

    def test_quanta_are_in_proportion_to_weights(self):
        policy = policy_of(DeficitRoundRobin, {"a": 3}, quantum=10)
        queue(policy, "a", *of("a", *[10] * 9))
        queue(policy, "b", *of("b", *[10] * 9))
        assert tenants(served_in_turn(policy, 8)) == "aaabaaab"

    @given(
        st.lists(st.tuples(st.sampled_from("abc"), st.integers(1, 60)), min_size=1, max_size=30),
        st.integers(1, 9),
        st.integers(1, 4),
    )
    def test_visits_that_are_counted_decide_as_visits_that_are_made(self, arrivals, quantum, weight):
        quick, slow = (policy_of(kind, {"a": weight}, quantum=quantum) for kind in (DeficitRoundRobin, VisitsAll))
        for number, (tenant, cost) in enumerate(arrivals):
            for policy in (quick, slow):
                policy.arrive(tenant, Job(f"{number}", cost))
        assert names(served_in_turn(quick)) == names(served_in_turn(slow))

    def test_a_small_quantum_is_as_quick_as_any(self):
        policy = policy_of(DeficitRoundRobin, quantum=1)
        queue(policy, "a", *of("a", 10**15))
        queue(policy, "b", *of("b", 10**15 - 1))
        assert tenants(served_in_turn(policy)) == "ba"


class VisitsAll(DeficitRoundRobin[Job]):
    """The source to the letter: it visits round after round."""

    def choose(self) -> str:
        while (tenant := self._round()) is None:
            pass
        return tenant


@pytest.mark.parametrize("kind", [RoundRobin, Stride, DeficitRoundRobin])
def test_a_tenant_whose_only_request_was_withdrawn_has_no_turn(kind):
    policy = policy_of(kind)
    queue(policy, "a", *of("a", 5))
    queue(policy, "b", *of("b", 5, 5))
    policy.remove("a", of("a", 5)[0])
    assert tenants(served_in_turn(policy)) == "bb"
