"""What has to be looked at: once for a burst, by one worker at a time, and later each time it fails."""

from __future__ import annotations

import asyncio
from collections.abc import Sized

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairpool_operator.workqueue import FIRST_DELAY, LONG, MOST_DELAY, Schedule, WorkQueue


class TestAKey:
    def test_is_handed_out_once_for_a_burst_of_events(self):
        schedule = Schedule[str]()
        for _ in range(10):
            schedule.add("a", 1.0)
        assert schedule.take(1.0) == "a"
        schedule.done("a", 1.0, failed=False)
        assert schedule.take(100.0) is None

    def test_is_not_handed_out_before_it_is_due(self):
        schedule = Schedule[str]()
        schedule.add("a", 5.0)
        assert schedule.take(4.9) is None
        assert schedule.next_due() == 5.0
        assert schedule.take(5.0) == "a"

    def test_comes_sooner_when_told_so_but_never_later(self):
        schedule = Schedule[str]()
        schedule.add("a", 5.0)
        schedule.add("a", 2.0)
        schedule.add("a", 9.0)
        assert schedule.next_due() == 2.0
        assert schedule.take(2.0) == "a"
        schedule.done("a", 2.0, failed=False)
        assert schedule.take(10.0) is None

    def test_that_is_worked_on_comes_back_afterwards_if_something_happened(self):
        schedule = Schedule[str]()
        schedule.add("a", 0.0)
        assert schedule.take(0.0) == "a"
        schedule.add("a", 1.0)
        schedule.add("b", 1.0)
        assert (schedule.is_due("a", 0.9), schedule.is_due("a", 1.0)) == (False, True)
        assert schedule.take(1.0) == "b"
        assert schedule.take(1.0) is None
        schedule.done("a", 1.0, failed=False)
        assert schedule.take(1.0) == "a"

    def test_that_is_due_far_away_time_and_again_is_remembered_once(self):
        schedule = Schedule[str]()
        for now in range(1000):
            schedule.add("a", now)
            assert schedule.take(now) == "a"
            schedule.add("a", 1e9 + now)
            schedule.done("a", now, failed=False)
        assert sum(len(each) for each in vars(schedule).values() if isinstance(each, Sized)) == 1


class TestAFailure:
    def test_doubles_the_delay_up_to_a_bound(self):
        schedule, now, delays = Schedule[str](), 0.0, []
        schedule.add("a", now)
        for _ in range(12):
            assert schedule.take(now) == "a"
            schedule.done("a", now, failed=True)
            due = schedule.next_due()
            assert due is not None
            delays.append(due - now)
            now = due
        assert delays[:4] == [FIRST_DELAY, FIRST_DELAY * 2, FIRST_DELAY * 4, FIRST_DELAY * 8]
        assert delays[-1] == MOST_DELAY

    def test_is_forgotten_after_a_success(self):
        schedule = Schedule[str]()
        for failed in (True, True, False, True):
            schedule.add("a", 0.0)
            assert schedule.take(0.0) == "a"
            schedule.done("a", 0.0, failed=failed)
        assert schedule.next_due() == FIRST_DELAY

    def test_is_not_waited_out_when_an_event_comes(self):
        schedule = Schedule[str]()
        schedule.add("a", 0.0)
        assert schedule.take(0.0) == "a"
        schedule.done("a", 0.0, failed=True)
        schedule.add("a", 0.1)
        assert schedule.take(0.1) == "a"

    def test_delays_no_other_key(self):
        schedule = Schedule[str]()
        schedule.add("a", 0.0)
        assert schedule.take(0.0) == "a"
        schedule.done("a", 0.0, failed=True)
        schedule.add("b", 0.0)
        assert schedule.take(0.0) == "b"

    @given(st.floats(0.0, 1.0, exclude_max=True))
    def test_is_spread_by_a_third_at_most(self, spread):
        schedule = Schedule[str]()
        schedule.add("a", 0.0)
        schedule.take(0.0)
        schedule.done("a", 0.0, failed=True, spread=spread)
        due = schedule.next_due()
        assert due is not None
        assert FIRST_DELAY * 2 / 3 <= due <= FIRST_DELAY


class TestKeysThatTakeLongToFail:
    @pytest.fixture
    def schedule(self):
        """One of four workers, at a time when each has worked for long, and in vain, and all is due again."""
        return self.after(LONG + 1.0, failed=True)

    def after(self, seconds, *, failed):
        schedule = Schedule[str](workers=4)
        for key in "abcd":
            schedule.add(key, 0.0)
        for key in "abcd":
            assert schedule.take(0.0) == key
        for key in "abcd":
            schedule.done(key, seconds, failed=failed)
            schedule.add(key, seconds)
        return schedule

    def taken(self, schedule):
        found = []
        while (key := schedule.take(10.0)) is not None:
            found.append(key)
        return found

    def test_leave_half_of_the_workers_to_all_others(self, schedule):
        assert self.taken(schedule) == ["a", "b"]
        assert schedule.next_due() is None
        schedule.add("e", 9.0)
        schedule.add("f", 10.0)
        assert self.taken(schedule) == ["e", "f"]

    def test_have_their_turns(self, schedule):
        assert self.taken(schedule) == ["a", "b"]
        schedule.done("a", 20.0, failed=True)
        assert self.taken(schedule) == ["c"]
        schedule.done("b", 20.0, failed=False)
        assert self.taken(schedule) == ["d"]

    @pytest.mark.parametrize(("seconds", "failed"), [(LONG - 1.0, True), (LONG + 1.0, False)], ids=["soon", "done"])
    def test_are_none_that_fail_soon_and_none_that_get_done(self, seconds, failed):
        assert self.taken(self.after(seconds, failed=failed)) == [*"abcd"]

    def test_are_worked_on_also_where_there_is_one_worker(self):
        schedule = Schedule[str]()
        schedule.add("a", 0.0)
        for now in (0.0, 100.0, 200.0):
            assert schedule.take(now) == "a"
            schedule.done("a", now + LONG + 1.0, failed=True)


class Forgetful(Schedule[str]):
    """Drops what happens to a key while it is worked on."""

    def add(self, key: str, at: float) -> None:
        if key not in self._worked_on:
            super().add(key, at)


class Hasty(Schedule[str]):
    """Hands out a key that somebody works on."""

    def take(self, now: float) -> str | None:
        self._worked_on.clear()
        return super().take(now)


def check(schedule: Schedule[str], steps: list[tuple[str, str]]) -> None:
    """After each step: one worker a key at most; in the end whatever was added since it was taken last is there."""
    working: set[str] = set()
    owed: set[str] = set()
    for action, key in steps:
        if action == "add":
            schedule.add(key, 0.0)
            owed.add(key)
        elif action == "take":
            taken = schedule.take(0.0)
            assert taken not in working, "a key is worked on twice at once"
            if taken is not None:
                working.add(taken)
                owed.discard(taken)
        elif key in working:
            schedule.done(key, 0.0, failed=False)
            working.discard(key)
    for key in working:
        schedule.done(key, 0.0, failed=False)
    left = set()
    while (key_left := schedule.take(0.0)) is not None:
        left.add(key_left)
        schedule.done(key_left, 0.0, failed=False)
    assert left == owed, "an event was lost, or made up"


STEPS = st.lists(st.tuples(st.sampled_from(["add", "take", "done"]), st.sampled_from("abc")), max_size=40)
MEANWHILE = [("add", "a"), ("take", ""), ("add", "a")]
TWICE = [("add", "a"), ("take", ""), ("add", "a"), ("take", "")]


class TestWhateverTheOrderOfEvents:
    @given(STEPS)
    def test_nothing_is_lost_and_no_key_is_worked_on_twice_at_once(self, steps):
        check(Schedule[str](), steps)

    def test_a_schedule_that_forgets_what_happens_meanwhile_is_caught(self):
        check(Schedule[str](), MEANWHILE)
        with pytest.raises(AssertionError, match="lost"):
            check(Forgetful(), MEANWHILE)

    def test_a_schedule_that_hands_a_key_out_twice_is_caught(self):
        check(Schedule[str](), TWICE)
        with pytest.raises(AssertionError, match="twice"):
            check(Hasty(), TWICE)


class TestOnTheEventLoop:
    async def test_a_worker_that_waits_is_woken_by_an_event(self):
        queue = WorkQueue[str](chance=lambda: 0.0)
        worker = asyncio.create_task(queue.take())
        await asyncio.sleep(0)
        queue.add("a")
        assert await worker == "a"

    async def test_a_key_that_failed_comes_back_by_itself(self):
        queue = WorkQueue[str](chance=lambda: 0.0)
        queue.add("a")
        assert await queue.take() == "a"
        queue.done("a", failed=True)
        assert await queue.take() == "a"

    async def test_several_workers_share_what_comes(self):
        queue = WorkQueue[str]()
        workers = [asyncio.create_task(queue.take()) for _ in range(3)]
        await asyncio.sleep(0)
        for key in "abc":
            queue.add(key)
        assert sorted(await asyncio.gather(*workers)) == ["a", "b", "c"]

    async def test_a_queue_that_is_closed_hands_out_nothing_more_to_whoever_waits(self):
        queue = WorkQueue[str]()
        worker = asyncio.create_task(queue.take())
        await asyncio.sleep(0)
        queue.close()
        queue.add("a")
        assert await worker is None
        assert await queue.take() is None
