"""Waits in a fluid server are those that can be worked out by hand, and it is never idle while somebody waits."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairpool_lab.measures.fluid_waits import Work, fluid_waits

ALIKE = {"a": 1, "b": 1}

works = st.lists(
    st.builds(Work, st.integers(0, 50).map(float), st.sampled_from(("a", "b")), st.integers(1, 100).map(float)),
    min_size=1,
    max_size=20,
).map(sorted)


class TestByHand:
    def test_who_is_alone_never_waits(self):
        assert fluid_waits([Work(0, "a", 10), Work(20, "a", 10)], ALIKE, 1) == {"a": [0, 0], "b": []}

    def test_two_who_come_together_are_served_half_as_fast(self):
        assert fluid_waits([Work(0, "a", 10), Work(0, "b", 10)], ALIKE, 1) == {"a": [10], "b": [10]}

    def test_weights_divide_the_rate(self):
        waits = fluid_waits([Work(0, "a", 30), Work(0, "b", 10)], {"a": 3, "b": 1}, 1)
        assert waits == {"a": [10], "b": [30]}

    def test_ones_own_requests_are_waited_for_in_order(self):
        assert fluid_waits([Work(0, "a", 10), Work(0, "a", 10)], ALIKE, 1)["a"] == [0, 10]

    def test_who_asks_for_little_does_not_wait_for_who_asks_for_much(self):
        crowd = [*(Work(0, "a", 10) for _ in range(50)), Work(100, "b", 10)]
        assert fluid_waits(crowd, ALIKE, 1)["b"] == [10]


class TestAlways:
    @given(works)
    def test_the_last_is_done_when_a_server_that_is_never_idle_would_be(self, work):
        waits = fluid_waits(work, ALIKE, 2.0)
        now = 0.0
        for each in work:
            now = max(now, each.arrival) + each.cost / 2.0
        ends = [
            each.arrival + wait + each.cost / 2.0
            for tenant, its in waits.items()
            for each, wait in zip([each for each in work if each.tenant == tenant], its, strict=True)
        ]
        assert max(ends) == pytest.approx(now)
        assert min(map(min, filter(None, waits.values()))) > -1e-6
