"""What somebody else changes again and again is put back later and later; what is wanted anew is written at once."""

from hypothesis import given
from hypothesis import strategies as st

from fairpool_operator.contests import AT_ONCE, MOST_DELAY, Contests

SERVICE, SECRET = ("Service", "inference", "llama"), ("Secret", "inference", "llama")


def fight(contests, times, *, name=SERVICE, edition="a", now=0.0):
    """Put the same back so many times, each as soon as that may be; returns how long each waited."""
    waits = []
    for _ in range(times):
        waits.append(contests.wait(name, edition, now))
        now += waits[-1]
        contests.written(name, edition, now)
    return waits


class TestWhatIsPutBack:
    def test_a_few_times_in_a_row_never_waits(self):
        assert fight(Contests(), AT_ONCE + 1) == [0.0] * (AT_ONCE + 1)

    def test_more_often_waits_twice_as_long_each_time_up_to_a_minute(self):
        waits = fight(Contests(), AT_ONCE + 10)
        assert waits[AT_ONCE + 1 :] == [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 60.0, 60.0, 60.0]

    def test_seldom_never_waits(self):
        contests = Contests()
        for number in range(20):
            assert contests.wait(SERVICE, "a", number * 6 * MOST_DELAY) == 0.0
            contests.written(SERVICE, "a", number * 6 * MOST_DELAY)
            contests.written(SECRET, "a", number * 6 * MOST_DELAY)
        assert fight(contests, AT_ONCE, now=20 * 6 * MOST_DELAY) == [0.0] * AT_ONCE

    def test_waits_no_longer_than_its_writer_bears(self):
        contests = Contests()
        fight(contests, 30)
        last = contests._written[SERVICE].at
        assert contests.wait(SERVICE, "a", last, most=5.0) == 5.0
        assert contests.wait(SERVICE, "a", last) == MOST_DELAY

    def test_waits_for_nothing_else(self):
        contests = Contests()
        fight(contests, 12)
        assert contests.wait(SERVICE, "b", 0.0) == 0.0
        assert contests.wait(SECRET, "a", 0.0) == 0.0

    @given(st.lists(st.tuples(st.sampled_from("ab"), st.floats(0, 600)), max_size=60))
    def test_never_waits_longer_than_a_minute_nor_for_a_new_edition(self, writes):
        contests, now, last = Contests(), 0.0, None
        for edition, later in writes:
            now += later
            wait = contests.wait(SERVICE, edition, now)
            assert 0.0 <= wait <= MOST_DELAY
            assert wait == 0.0 or edition == last
            contests.written(SERVICE, edition, now)
            last = edition

    def test_long_ago_is_not_remembered(self):
        contests = Contests()
        for number in range(1000):
            contests.written(("Service", "inference", str(number)), "a", number * 10.0)
        assert len(contests._written) < 50
