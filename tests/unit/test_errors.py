"""When a refused tenant is told to come back: within what its client obeys, and not together with all others."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairpool_gateway.errors import QueueFull

spreads = st.floats(0, 1, exclude_max=True)


def told(retry_after, spread):
    return int(dict(QueueFull("Full.", retry_after=retry_after).headers(spread))[b"retry-after"])


class TestRetryAfter:
    @given(st.integers(-5, 1000), spreads)
    def test_is_in_the_last_third_of_what_was_measured_and_never_beyond_what_clients_obey(self, measured, spread):
        bounded = min(max(measured, 1), 60)
        assert max(1, bounded - bounded // 3) <= told(measured, spread) <= bounded

    @pytest.mark.parametrize(("measured", "all_told"), [(1, {1}), (3, {2, 3}), (60, set(range(40, 61)))])
    def test_is_spread_evenly(self, measured, all_told):
        assert {told(measured, spread / 100) for spread in range(100)} == all_told

    def test_is_left_out_where_there_is_nothing_to_wait_for(self):
        assert b"retry-after" not in dict(QueueFull("Full.").headers(0.5))
