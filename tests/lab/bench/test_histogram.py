"""The load generator's percentiles: never below the true one, and at most 0.8 % above it."""

from __future__ import annotations

import math

from hypothesis import example, given, settings
from hypothesis import strategies as st
from support.load_programs import probed

PARTS = (0.5, 0.9, 0.99, 0.999, 1.0)

times = st.one_of(st.integers(0, 300), st.integers(0, 10**7), st.integers(0, 2**62))


def percentiles(values: list[int]) -> list[int]:
    said = probed("percentiles", *map(str, PARTS), given=" ".join(map(str, values)).encode())
    return [int(each) for each in said.split()]


@settings(max_examples=40, deadline=None)
@given(st.lists(times, min_size=1, max_size=200))
@example([0])
@example([255, 256, 257])
@example(list(range(1, 1001)))
@example([2**62])
def test_each_percentile_is_the_true_one_or_at_most_a_128th_above_it(values):
    ordered = sorted(values)
    for part, told in zip(PARTS, percentiles(values), strict=True):
        true = ordered[math.ceil(part * len(ordered)) - 1]
        assert true <= told <= true + true // 128


def test_of_nothing_they_are_0():
    assert percentiles([]) == [0] * len(PARTS)


def test_a_time_before_0_counts_as_0():
    assert percentiles([-5, -5, -5]) == [0] * len(PARTS)
