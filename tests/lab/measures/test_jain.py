"""Jain's index, and the shares that it is taken of."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction

import pytest
from hypothesis import Phase, find, given, settings
from hypothesis import strategies as st
from support.log_events import Step, log_of

from fairpool_lab.measures import jain
from fairpool_lab.measures.shares import shares

some = st.lists(st.integers(0, 50), min_size=1, max_size=8)


def by_variance(values: Sequence[int]) -> float:
    """The same by the other way: one over one plus the square of the coefficient of variation."""
    mean = Fraction(sum(values), len(values))
    if not mean:
        return 1.0
    variance = sum((value - mean) ** 2 for value in values) / len(values)
    return float(1 / (1 + variance / mean**2))


class TestIndex:
    @given(some)
    def test_it_is_one_over_one_plus_the_relative_variance(self, values):
        assert jain.index(values) == pytest.approx(by_variance(values), rel=1e-12)

    @pytest.mark.parametrize(
        "broken",
        [
            lambda values: min(values) / max(values) if any(values) else 1.0,
            lambda values: sum(values) ** 2 / sum(value**2 for value in values) if any(values) else 1.0,
            lambda values: jain.index(value for value in values if value),
        ],
        ids=["least over greatest", "not divided by how many", "without those who got nothing"],
    )
    def test_the_comparison_catches(self, broken: Callable[[Sequence[int]], float]):
        def disagrees(values: Sequence[int]) -> bool:
            return broken(values) != pytest.approx(by_variance(values))

        assert find(some, disagrees, settings=settings(max_examples=2000, database=None, phases=[Phase.generate]))

    def test_all_alike_is_one_and_one_of_n_with_everything_is_one_nth(self):
        assert jain.index([3, 3, 3]) == 1
        assert jain.index([0, 0, 0, 7]) == 0.25
        assert jain.index([]) == jain.index([0, 0]) == 1


class TestOfShares:
    def test_it_is_taken_of_received_over_entitled(self):
        arrivals = [Step("arrive", tenant, 4, 0) for tenant in "aabb"]
        fair = log_of([*arrivals, Step("dispatch", "a", 4, 0), Step("dispatch", "b", 4, 0)])
        unfair = log_of([*arrivals, Step("dispatch", "a", 4, 0), Step("dispatch", "a", 4, 0)])
        assert jain.of_shares(shares(fair, until=99.0)) == pytest.approx(1)
        assert jain.of_shares(shares(unfair, until=99.0)) == pytest.approx(1 / 2)

    def test_weights_are_part_of_what_one_is_entitled_to(self):
        arrivals = [*(Step("arrive", tenant, 12, 0) for tenant in "aabb"), Step("reweigh", "b", 3, 0)]
        log = log_of([*arrivals, Step("dispatch", "a", 4, 0), Step("dispatch", "b", 12, 0)])
        assert jain.of_shares(shares(log, until=99.0)) == pytest.approx(1)
