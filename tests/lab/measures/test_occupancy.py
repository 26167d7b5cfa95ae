"""How many slots were taken, and how many of them while somebody waited."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from hypothesis import Phase, find, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from support import lab_pool
from support.log_events import Step, log_of

from fairpool_gateway.cost import Used
from fairpool_gateway.decision_log import Arrive, Complete, Dispatch, Remove
from fairpool_lab import decisions, traces
from fairpool_lab.decisions import Event
from fairpool_lab.measures.occupancy import Occupancy, occupancy

SLOTS = 3

moves = st.lists(
    st.builds(
        Step,
        kind=st.sampled_from(["arrive", "arrive", "dispatch", "dispatch", "remove"]),
        tenant=st.sampled_from("ab"),
        size=st.integers(0, 2),
        place=st.integers(0, 11),
    ),
    min_size=1,
    max_size=30,
)
"""Steps of a log, each `size` seconds after the one before; `place` says whether something completes as well."""


def events_of(moves: Sequence[Step]) -> list[Event]:
    events: list[Event] = []
    running: list[Dispatch] = []
    done: list[Dispatch] = []
    now = 0.0
    for event in log_of(moves).events:
        move = moves[event.seq % len(moves)]
        now += move.size
        events.append(replace(event, seq=len(events), t=now))
        if isinstance(event, Dispatch):
            running.append(event)
        if running and move.place % 3 == 0:
            done.append(running.pop(move.place % len(running)))
            events.append(_completion(done[-1], len(events), now))
        elif done and move.place % 4 == 1:  # That of a retry, which was dispatched once only.
            events.append(_completion(done[0], len(events), now))
    return events


def _completion(event: Dispatch, seq: int, now: float) -> Complete:
    return Complete(seq, now, event.tenant, event.request, "e0", Used(1, 1))


def second_by_second(events: Sequence[Event]) -> tuple[float, float]:
    """Utilisation, and the same while somebody waited, by looking in the middle of each second."""
    if not events:
        return 0.0, 1.0
    taken, taken_while_waiting = [], []
    for second in range(int(events[0].t), int(events[-1].t)):
        before = [event for event in events if event.t <= second + 0.5]
        dispatched = {event.request for event in before if isinstance(event, Dispatch)}
        left = dispatched | {event.request for event in before if isinstance(event, Remove)}
        waiting = {event.request for event in before if isinstance(event, Arrive)} - left
        running = dispatched - {event.request for event in before if isinstance(event, Complete)}
        taken.append(len(running) / SLOTS)
        taken_while_waiting += [len(running) / SLOTS] if waiting else []
    whole = sum(taken) / len(taken) if taken else 0.0
    return whole, sum(taken_while_waiting) / len(taken_while_waiting) if taken_while_waiting else 1.0


def both(found: Occupancy) -> tuple[float, float]:
    return found.utilisation(SLOTS), found.utilisation_while_waiting(SLOTS)


def without(kind: type) -> Callable[[Sequence[Event]], Occupancy]:
    return lambda events: occupancy(event for event in events if not isinstance(event, kind))


class TestOccupancy:
    @given(moves)
    @settings(max_examples=150, deadline=None)
    def test_it_is_what_looking_second_by_second_finds(self, moves):
        events = events_of(moves)
        assert both(occupancy(events)) == pytest.approx(second_by_second(events))

    @pytest.mark.parametrize(
        "broken",
        [without(Complete), without(Remove), lambda events: _by_count(occupancy(events))],
        ids=["slots are never given back", "removals are not seen", "every event counts alike"],
    )
    def test_the_comparison_catches(self, broken: Callable[[Sequence[Event]], Occupancy]):
        def disagrees(moves: Sequence[Step]) -> bool:
            events = events_of(moves)
            return both(broken(events)) != pytest.approx(second_by_second(events))

        assert find(moves, disagrees, settings=settings(max_examples=3000, database=None, phases=[Phase.generate]))

    def test_an_empty_log_has_used_nothing_and_kept_nobody_waiting(self):
        assert both(occupancy([])) == (0.0, 1.0)

    def test_the_product_keeps_no_slot_free_while_somebody_waits(self):
        trace = traces.busiest(traces.read(traces.EXCERPT), 60)
        found = occupancy(decisions.read(lab_pool.run(trace, weights={}, slots=SLOTS)).events)
        assert found.utilisation_while_waiting(SLOTS) == 1
        assert 0 < found.utilisation(SLOTS) <= 1


def _by_count(found: Occupancy) -> Occupancy:
    return Occupancy(tuple(float(place) for place in range(len(found.times))), found.taken, found.waiting)
