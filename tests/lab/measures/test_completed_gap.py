"""The gap in completed work, found in one pass, is what trying every interval finds; and SFQ keeps its bound."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from itertools import permutations

import pytest
from hypothesis import Phase, find, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from support import lab_pool
from support.log_events import TENANTS, Step, log_of, steps

from fairpool_gateway.cost import Used
from fairpool_gateway.decision_log import Arrive, Complete, Dispatch, Remove
from fairpool_lab import decisions, traces
from fairpool_lab.decisions import Event, Log
from fairpool_lab.measures import completed_gap
from fairpool_lab.policies.arrival_order import ArrivalOrder

SLOTS = 2


def cost(used: Used) -> int:
    return used.input + 2 * used.output


def with_completions(steps: Sequence[Step], places: Sequence[int]) -> Log:
    """The log of these steps, with requests that run completed here and there, at other costs than were charged."""
    events: list[Event] = []
    running: list[Dispatch] = []
    log = log_of(steps)
    for event in log.events:
        events.append(replace(event, seq=len(events)))
        running += [event] if isinstance(event, Dispatch) else []
        place = places[event.seq % len(places)]
        if running and place % 2:
            done = running.pop(place % len(running))
            used = Used(place, 1) if place > 2 else None
            events.append(Complete(len(events), event.t, done.tenant, done.request, "e0", used))
    return Log(log.header, tuple(events))


logs = st.builds(with_completions, steps, st.lists(st.integers(0, 9), min_size=1, max_size=9))


def every_interval(log: Log) -> dict[tuple[str, str], int]:
    """The greatest gap of each pair by its definition, where it is positive."""
    waiting: Counter[str] = Counter()
    total: Counter[str] = Counter()
    weights = {event.request: event.weight for event in log.events if isinstance(event, Dispatch)}
    states = []
    for event in log.events:
        if isinstance(event, Arrive | Dispatch | Remove):
            waiting[event.tenant] += 1 if isinstance(event, Arrive) else -1
        elif isinstance(event, Complete) and event.used is not None:
            total[event.tenant] += -(-cost(event.used) * log.header.q // weights[event.request])
        states.append((dict(waiting), dict(total)))
    found: Counter[tuple[str, str]] = Counter()
    for ahead, behind in permutations(TENANTS, 2):
        for after, (_, before) in enumerate(states):
            for queues, then in states[after:]:
                gained = then.get(ahead, 0) - before.get(ahead, 0)
                gap = gained - (then.get(behind, 0) - before.get(behind, 0))
                found[ahead, behind] = max(found[ahead, behind], gap)
                if not (queues.get(ahead) and queues.get(behind)):
                    break
    return dict(+found)


def measured(log: Log) -> dict[tuple[str, str], int]:
    return {(gap.ahead, gap.behind): gap.gap for gap in completed_gap.measure(log, slots=SLOTS, cost=cost)}


def without(kind: type) -> Callable[[Log], dict[tuple[str, str], int]]:
    return lambda log: measured(Log(log.header, tuple(event for event in log.events if not isinstance(event, kind))))


def at_weight_one(log: Log) -> dict[tuple[str, str], int]:
    events = (replace(event, weight=1) if isinstance(event, Dispatch) else event for event in log.events)
    return measured(Log(log.header, tuple(events)))


class TestEveryInterval:
    @given(logs)
    @settings(max_examples=150, deadline=None)
    def test_one_pass_finds_what_trying_every_interval_finds(self, log):
        assert measured(log) == every_interval(log)

    @pytest.mark.parametrize("broken", [without(Remove), at_weight_one], ids=["ignores removals", "ignores weights"])
    def test_the_comparison_catches_a_measure_that(self, broken):
        def disagrees(log: Log) -> bool:
            return broken(log) != every_interval(log)

        assert find(logs, disagrees, settings=settings(max_examples=3000, database=None, phases=[Phase.generate]))


class TestByHand:
    """Two tenants that always wait: a completes 5, b 3, a 4, b 1, a 5."""

    @pytest.fixture
    def log(self):
        done = (("a", 5), ("b", 3), ("a", 4), ("b", 1), ("a", 5))
        asked = [Step("arrive", tenant, 1, 0) for tenant in "ab" for _ in range(4)]
        log = log_of([*asked, *(Step("dispatch", tenant, 1, 0) for tenant, _ in done)])
        dispatched = [event for event in log.events if isinstance(event, Dispatch)]
        events = list(log.events)
        for (tenant, tokens), event in zip(done, dispatched, strict=True):
            events.append(Complete(len(events), 99.0, tenant, event.request, "e0", Used(tokens, 0)))
        return Log(log.header, tuple(events))

    def test_the_gap_is_the_most_that_one_completed_more_than_the_other_in_between(self, log):
        q = log.header.q
        assert measured(log) == {("a", "b"): (5 - 3 + 4 - 1 + 5) * q, ("b", "a"): 3 * q}

    def test_the_bound_is_a_request_more_of_each_than_there_are_slots(self, log):
        bounds = {gap.bound for gap in completed_gap.measure(log, slots=SLOTS, cost=cost)}
        assert bounds == {(SLOTS + 1) * (5 + 3) * log.header.q}


class TestOrders:
    @pytest.fixture(scope="class")
    @staticmethod
    def real_trace():
        return traces.busiest(traces.read(traces.EXCERPT), 120)

    def worst(self, trace, slots: int, **order) -> float:
        rate = 1_600 / slots
        lines = lab_pool.run(trace, weights=traces.weights(trace), slots=slots, tokens_per_second=rate, **order)
        log = decisions.read(lines)
        return completed_gap.measure(log, slots=slots, cost=cost)[0].ratio

    @pytest.mark.parametrize("slots", [1, 4, 16])
    def test_sfq_keeps_the_bound_whatever_the_slots(self, real_trace, slots):
        assert self.worst(real_trace, slots) <= 1

    def test_order_of_arrival_does_not(self, real_trace):
        assert self.worst(real_trace, 1, ordering=ArrivalOrder) > 1
