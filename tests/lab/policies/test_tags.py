"""Orders by tags of virtual time: WFQ by finish tags, SFQ by start tags."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from support.policies import Job, names, policy_of, queue, served_in_turn, tenants

from fairpool_lab.policies import Policy
from fairpool_lab.policies.sfq import StartTimeFairQueueing
from fairpool_lab.policies.weighted_fair_queueing import WeightedFairQueueing


def departures(policy: Policy[Job], arrivals: Iterable[tuple[int, str, int]]) -> dict[str, list[int]]:
    """When a link of one token a second has sent each packet; packets that come as one ends are there in time."""
    now, coming, gone = 0, sorted(arrivals), dict[str, list[int]]()
    while coming or policy.waiting:
        while coming and coming[0][0] <= now:
            at, tenant, cost = coming.pop(0)
            policy.arrive(tenant, Job(f"{tenant} at {at}", cost))
        if (decision := policy.dispatch()) is None:
            now = coming[0][0]
        else:
            now += decision.cost
            gone.setdefault(decision.tenant, []).append(now)
    return gone


class TestWeightedFairQueueing:
    SESSIONS = ((1, "1", 1), (2, "1", 1), (3, "1", 2), (11, "1", 2), (0, "2", 3), (5, "2", 2), (9, "2", 2))

    @pytest.mark.parametrize(
        ("weights", "first", "second"),
        [
            ({"1": 1, "2": 1}, [4, 5, 7, 13], [3, 9, 11]),
            ({"1": 1, "2": 2}, [4, 5, 9, 13], [3, 7, 11]),
        ],
        ids=["equal weights", "the second twice the first"],
    )
    def test_the_example_of_parekh_and_gallager(self, weights, first, second):
        """Two sessions on a link of rate 1.

        At 0 the second sends 3, so V is 3 (1.5 where it weighs 2). The first's packets of 1, 1 and 2 get the tags
        V+1, V+2 and V+4. When the first two are sent, at 5, V has moved by 2, and the second's packet of 2 gets V+2:
        the same tag as the first's packet of 2, which goes, by name. Weighing 2 it gets V+1, and goes before it.
        The last packets arrive at an idle link, or at one that sends the only other packet.
        """
        assert departures(policy_of(WeightedFairQueueing, weights), self.SESSIONS) == {"1": first, "2": second}

    def test_a_costly_request_lets_cheaper_ones_go_first_and_then_goes_whole(self):
        """a: tag 5. b: 2, 4, 6, 8. SFQ would have let a go at once (§6.3)."""
        policy = policy_of(WeightedFairQueueing)
        queue(policy, "a", Job("a", 5))
        queue(policy, "b", *(Job(f"b{number}", 2) for number in range(4)))
        assert tenants(served_in_turn(policy)) == "bbabb"

    def test_idleness_is_not_saved_up(self):
        """After a has had 10 alone V is 10, and b's first tag is 13, not 3: a's next, 12, goes first."""
        policy = policy_of(WeightedFairQueueing)
        queue(policy, "a", Job("a0", 10))
        served_in_turn(policy)
        queue(policy, "a", Job("a1", 2), Job("a2", 2))
        queue(policy, "b", Job("b", 3))
        assert names(served_in_turn(policy)) == ["a1", "b", "a2"]

    def test_a_withdrawn_request_is_not_served_by_the_fluid_server_either(self):
        """a's 100 is withdrawn: its next has the tag 1 again, and goes before b's 2."""
        policy = policy_of(WeightedFairQueueing)
        queue(policy, "a", Job("a0", 100))
        queue(policy, "b", Job("b", 2))
        policy.remove("a", Job("a0", 100))
        queue(policy, "a", Job("a1", 1))
        assert names(served_in_turn(policy)) == ["a1", "b"]

    def test_what_stood_behind_a_withdrawn_request_keeps_its_tag(self):
        policy = policy_of(WeightedFairQueueing)
        queue(policy, "a", Job("a0", 4), Job("a1", 1))
        queue(policy, "b", Job("b0", 2), Job("b1", 2), Job("b2", 2))
        policy.remove("a", Job("a0", 4))
        assert names(served_in_turn(policy)) == ["b0", "b1", "a1", "b2"]


class TestStartTimeFairQueueing:
    def test_the_example_of_the_article(self):
        """§2.7: a's requests cost 3, b's cost 1; after eight dispatches both were charged 6."""
        policy = policy_of(StartTimeFairQueueing)
        queue(policy, "a", *(Job(f"a{number}", 3) for number in range(9)))
        queue(policy, "b", *(Job(f"b{number}", 1) for number in range(9)))
        decisions = served_in_turn(policy, 8)
        assert tenants(decisions) == "abbbabbb"
        assert [decision.start_tag >> 32 for decision in decisions] == [0, 0, 1, 2, 3, 3, 4, 5]
