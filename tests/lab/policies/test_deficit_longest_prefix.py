"""DLPM: the longest cached prefix, among those who have something left of their quanta."""

from __future__ import annotations

from support.policies import Job, names, policy_of, queue, served_in_turn

from fairpool_lab.policies.deficit_longest_prefix import DeficitLongestPrefixMatch


def cached(name: str, prefix: int) -> Job:
    """A prompt of 10 tokens beyond its cached prefix."""
    return Job(name, prefix + 10, 0, prefix)


def test_the_longest_cached_prefix_goes_until_its_tenant_has_used_up_its_quantum():
    """Quantum 25. a's are cached, at 10 each: 25 -> 15 -> 5 -> -5, then b's turn: 25 -> 15 -> 5 -> -5.

    Then nobody has anything left, and both get 25: 20 each. a's go again.
    """
    policy = policy_of(DeficitLongestPrefixMatch, quantum=25)
    queue(policy, "a", *(cached(f"a{number}", 90) for number in range(5)))
    queue(policy, "b", *(cached(f"b{number}", 0) for number in range(5)))
    assert names(served_in_turn(policy)) == ["a0", "a1", "a2", "b0", "b1", "b2", "a3", "a4", "b3", "b4"]


def test_of_equal_prefixes_the_first_to_arrive_goes():
    policy = policy_of(DeficitLongestPrefixMatch, quantum=1000)
    queue(policy, "b", cached("b0", 8))
    queue(policy, "a", cached("a0", 8))
    queue(policy, "c", cached("c0", 9))
    assert names(served_in_turn(policy)) == ["c0", "b0", "a0"]


def test_generated_tokens_are_paid_as_they_come_whatever_is_cached():
    """a's answer of 20 tokens costs 40, which overdraws its quantum of 25."""
    policy = policy_of(DeficitLongestPrefixMatch, quantum=25)
    queue(policy, "a", Job("a0", 50, 20, cached=50), Job("a1", 50, 0, cached=50))
    queue(policy, "b", Job("b0", 5), Job("b1", 5))
    assert names(served_in_turn(policy)) == ["a0", "b0", "b1", "a1"]


def test_quanta_are_in_proportion_to_weights():
    policy = policy_of(DeficitLongestPrefixMatch, {"a": 3}, quantum=10)
    queue(policy, "a", *(cached(f"a{number}", 0) for number in range(9)))
    queue(policy, "b", *(cached(f"b{number}", 0) for number in range(9)))
    assert "".join(name[0] for name in names(served_in_turn(policy, 8))) == "aaabaaab"


def test_a_debt_of_many_quanta_is_paid_off_in_as_many_refills():
    """a owes 10,000 - 10 at a quantum of 10; b goes 1,000 times, and only then a again."""
    policy = policy_of(DeficitLongestPrefixMatch, quantum=10)
    queue(policy, "a", Job("a0", 10_000), Job("a1", 1))
    queue(policy, "b", *(cached(f"b{number}", 0) for number in range(1500)))
    order = names(served_in_turn(policy, 1502))
    assert order[0] == "a0"
    assert 999 <= order.index("a1") <= 1001


def test_the_debt_of_who_is_idle_is_paid_off_too_but_nothing_is_saved_up():
    """a owes 75 and leaves. b's 30 requests take 30 refills of 10: a is at 5 after eight, and gets no more.

    Back, a goes once for these 5 and is at -5, as b is at 0. A refill gives them 5 and 10, for one request each.
    """
    policy = policy_of(DeficitLongestPrefixMatch, quantum=10)
    queue(policy, "a", Job("a0", 85))
    served_in_turn(policy)
    queue(policy, "b", *(cached(f"b{number}", 0) for number in range(60)))
    served_in_turn(policy, 30)
    queue(policy, "a", *(cached(f"A{number}", 99) for number in range(9)))
    assert names(served_in_turn(policy, 4)) == ["A0", "A1", "b30", "A2"]
