"""A flood of one kind: one a second, and none lost from the count."""

from itertools import pairwise

import pytest
from hypothesis import Phase, find, given, settings
from hypothesis import strategies as st

from fairpool_gateway import floods
from fairpool_gateway.floods import MOST_KINDS, PERIOD, Floods

EVENTS = st.lists(
    st.tuples(st.integers(0, 40), st.sampled_from(["take a", "take b", "settle"])).map(
        lambda event: (event[0] / 16, event[1])
    ),
    max_size=40,
)
"""How long after the one before it each happens, in seconds that add up exactly, and what it is."""


def play(events, made=Floods):
    """What passed, as (time, kind, number); the last of it at the end."""
    flood, now, passed, taken = made(), 0.0, [], {"a": 0, "b": 0}
    for wait, event in events:
        now += wait
        if event == "settle":
            passed += [(now, kind, number) for kind, number in flood.settle(now)]
            continue
        kind = event[-1]
        taken[kind] += 1
        if number := flood.take(now, kind, kind):
            passed.append((now, kind, number))
    before_the_end = list(passed)
    passed += [(now, kind, number) for kind, number in flood.settle(now, all_of_them=True)]
    return passed, before_the_end, taken


def holds(events, made=Floods):
    passed, before_the_end, taken = play(events, made)
    for kind, number in taken.items():
        assert sum(each for _, of, each in passed if of == kind) == number
        times = [time for time, of, _ in before_the_end if of == kind]
        assert all(later - earlier >= PERIOD for earlier, later in pairwise(times))


@given(EVENTS)
def test_none_is_lost_and_one_a_second_passes(events):
    holds(events)


class ForgetsTheHeld(Floods):
    """Whoever passes stands for itself only."""

    def take(self, now, kind, thing):
        return min(1, super().take(now, kind, thing))


class SettlesTooEarly(Floods):
    """What is held back passes whenever somebody looks."""

    def settle(self, now, *, all_of_them=False):
        return super().settle(now, all_of_them=True)


class CountsByTheClock(Floods):
    """A period is a second of the clock, so two may pass at its turn."""

    def take(self, now, kind, thing):
        return super().take(float(int(now)), kind, thing)


@pytest.mark.parametrize("broken", [ForgetsTheHeld, SettlesTooEarly, CountsByTheClock])
def test_a_broken_one_is_caught(broken):
    def fails(events):
        try:
            holds(events, broken)
        except AssertionError:
            return True
        return False

    assert find(EVENTS, fails, settings=settings(max_examples=2000, phases=[Phase.generate], derandomize=True))


def test_the_first_passes_at_once_and_the_rest_with_their_number():
    flood = Floods()
    assert [flood.take(now, "kind", now) for now in (5.0, 5.2, 5.9)] == [1, 0, 0]
    assert flood.next_settling() == 6.0
    assert flood.settle(5.95) == []
    assert flood.settle(6.0) == [(5.9, 2)]
    assert flood.next_settling() is None
    assert [flood.take(now, "kind", now) for now in (6.5, 7.0)] == [0, 2]


def test_the_number_of_kinds_is_bounded_and_those_beyond_are_one(monkeypatch):
    monkeypatch.setattr(floods, "MOST_KINDS", 3)
    flood = Floods()
    assert [flood.take(0.0, kind, kind) for kind in range(6)] == [1, 1, 1, 1, 0, 0]
    assert len(flood._kinds) == 4
    assert flood.settle(1.0) == [(5, 2)]
    assert [flood.take(1.5, kind, kind) for kind in range(6)] == [1, 1, 1, 0, 0, 0]


def test_kinds_that_ended_make_room_for_others():
    flood = Floods()
    for kind in range(10 * MOST_KINDS):
        assert flood.take(kind / 100, kind, kind) == 1
    assert len(flood._kinds) <= MOST_KINDS + 1
