"""How long requests waited, and how long tenants went without a dispatch while they were backlogged."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import pytest
from hypothesis import Phase, find, given, settings
from hypothesis import strategies as st
from support.log_events import Step, log_of, steps

from fairpool_gateway.decision_log import Arrive, Dispatch, Remove
from fairpool_lab.decisions import Event
from fairpool_lab.measures.distribution import Distribution
from fairpool_lab.measures.waits import droughts, waits


class TestDistribution:
    @pytest.mark.parametrize(("count", "p50", "p99"), [(1, 1, 1), (2, 1, 2), (100, 50, 99), (101, 51, 100)])
    def test_percentiles_are_numbers_that_occurred(self, count, p50, p99):
        measured = Distribution.of(float(number) for number in range(count, 0, -1))
        assert (measured.p50, measured.p99) == (p50, p99)

    @given(st.lists(st.integers(0, 5), min_size=1), st.integers(1, 100))
    def test_a_percentile_is_the_least_that_so_many_do_not_exceed(self, values, percent):
        enough = [value for value in values if 100 * sum(v <= value for v in values) >= percent * len(values)]
        assert Distribution.of(values).percentile(percent) == min(enough)

    def test_the_mean_is_of_all(self):
        assert Distribution.of([3.0, 1.0, 8.0]).mean == 4


class TestWaits:
    def test_a_wait_is_from_arrival_to_dispatch(self):
        log = log_of([Step("arrive", "a", 1, 0), Step("arrive", "a", 1, 0), *[Step("dispatch", "a", 1, 0)] * 2])
        assert waits(log.events) == {"a": Distribution((2.0, 2.0))}

    def test_what_was_never_dispatched_has_no_wait(self):
        assert waits(log_of([Step("arrive", "a", 1, 0), Step("remove", "a", 1, 0)]).events) == {}


def every_stretch(events: Sequence[Event]) -> dict[str, float]:
    """Droughts by their definition: all stretches in which a tenant is backlogged throughout and not dispatched."""
    longest: dict[str, float] = {}
    for tenant in {event.tenant for event in events if isinstance(event, Arrive)}:
        waiting, backlogged = 0, []
        for event in events:
            if getattr(event, "tenant", None) == tenant:
                waiting += isinstance(event, Arrive) - isinstance(event, Dispatch | Remove)
            backlogged.append(waiting > 0)
        dispatched = [isinstance(event, Dispatch) and event.tenant == tenant for event in events]
        for since in range(len(events)):
            for until in range(since, len(events)):
                if all(backlogged[since:until]) and not any(dispatched[since + 1 : until]) and backlogged[since]:
                    longest[tenant] = max(longest.get(tenant, 0.0), events[until].t - events[since].t)
    return longest


def longest_waits(events: Iterable[Event]) -> dict[str, float]:
    """What a drought is not: the longest wait of a request, behind its tenant's own."""
    return {tenant: waited.values[-1] for tenant, waited in waits(events).items()}


def until_the_last_dispatch(events: Sequence[Event]) -> dict[str, float]:
    """Forgets who still waits in the end."""
    last = max((event.seq for event in events if isinstance(event, Dispatch)), default=-1)
    return droughts(events[: last + 1])


def removals_do_not_end_any(events: Sequence[Event]) -> dict[str, float]:
    return droughts([event for event in events if not isinstance(event, Remove)])


class TestDroughts:
    @given(steps)
    @settings(max_examples=100, deadline=None)
    def test_one_pass_finds_what_trying_every_stretch_finds(self, steps):
        events = log_of(steps).events
        assert droughts(events) == every_stretch(events)

    @pytest.mark.parametrize("broken", [longest_waits, until_the_last_dispatch, removals_do_not_end_any])
    def test_the_comparison_catches(self, broken: Callable[[Sequence[Event]], dict[str, float]]):
        def disagrees(steps: list[Step]) -> bool:
            events = log_of(steps).events
            return broken(events) != every_stretch(events)

        assert find(steps, disagrees, settings=settings(max_examples=2000, database=None, phases=[Phase.generate]))

    def test_a_long_queue_of_ones_own_is_no_drought(self):
        served_at_once = [Step("arrive", "a", 1, 0), Step("arrive", "a", 1, 0), Step("dispatch", "a", 1, 0)] * 5
        log = log_of([*served_at_once, *[Step("dispatch", "a", 1, 0)] * 5])
        assert waits(log.events)["a"].values[-1] == 8
        assert droughts(log.events) == {"a": 3.0}
