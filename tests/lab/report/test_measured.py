"""What the report shows of a run is what the measures say of its log."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest
from hypothesis import Phase, find, given, settings
from msgspec.structs import replace
from support.log_events import Step, completed, log_of, steps

from fairpool_gateway.cost import Used
from fairpool_gateway.decision_log import Dispatch
from fairpool_lab.decisions import Log
from fairpool_lab.measures import gap
from fairpool_lab.measures.occupancy import occupancy
from fairpool_lab.measures.served import Served
from fairpool_lab.report import PolicyRun, measured

SLOTS = 4


def run_of(log: Log) -> PolicyRun:
    return measured("any", log, slots=SLOTS)


def at_the_end(log: Log) -> dict[str, float]:
    """What each tenant was charged in all, in tokens per weight."""
    charged: Counter[str] = Counter()
    for event in log.events:
        if isinstance(event, Dispatch):
            charged[event.tenant] += event.charge
    return {tenant: units / log.header.q for tenant, units in charged.items()}


def check(run: PolicyRun, log: Log) -> None:
    ends = {tenant.tenant: tenant.service.values[-1] for tenant in run.tenants if tenant.service.values}
    assert ends == pytest.approx(at_the_end(log))
    values = run.utilisation.values
    assert sum(values) / len(values) == pytest.approx(occupancy(log.events).utilisation(SLOTS))
    gaps = gap.measure(log.events)
    assert (run.distances.exceeded, run.distances.pairs) == (gaps.exceeded, len(gaps.pairs))
    beyond = [pair.tightest.excess for pair in gaps.pairs if not pair.within_bound]
    shown = zip(run.distances.gap.values, run.distances.bound.values, strict=True)
    excess = max((above - bound for above, bound in shown), default=0.0)
    assert max(0.0, excess) == pytest.approx(max(beyond, default=0) / log.header.q)


def is_caught(measure: Callable[[Log], PolicyRun]) -> Callable[[list[Step]], bool]:
    def on(steps: list[Step]) -> bool:
        log = completed(log_of(steps), [Used(1, 1)])
        try:
            check(measure(log), log)
        except AssertionError:
            return True
        return False

    return on


class TestCurves:
    @given(steps)
    @settings(max_examples=60, deadline=None)
    def test_they_end_where_the_run_does_and_show_its_worst_gap(self, steps):
        log = completed(log_of(steps), [Used(1, 1)])
        check(run_of(log), log)

    @pytest.mark.parametrize(
        "broken",
        [
            lambda log: run_of(Log(log.header, log.events[:-1])),
            lambda log: measured("any", log, slots=SLOTS + 1),
            lambda log: run_of(Log(log.header, tuple(e for e in log.events if not isinstance(e, Dispatch)))),
        ],
        ids=["an event short", "another number of slots", "no dispatches"],
    )
    def test_the_comparison_catches_a_run_that_has(self, broken):
        unshrunk = settings(max_examples=500, database=None, phases=[Phase.generate])
        assert find(steps, is_caught(broken), settings=unshrunk)


class TestFigures:
    LOG = completed(
        log_of([*(Step("arrive", tenant, 6, 0) for tenant in "aabb"), *[Step("dispatch", "a", 6, 0)] * 2]), [Used(2, 2)]
    )

    def test_every_run_has_the_same_names_of_figures(self):
        empty, run = run_of(log_of([])), run_of(self.LOG)
        assert [name for name, _ in empty.figures] == [name for name, _ in run.figures if "p50" not in name]

    def test_first_tokens_are_shown_only_where_an_engine_told_them(self):
        assert not any("first token" in name for name, _ in run_of(self.LOG).figures)
        told = [Served("a", 0.0, 1.5, 3.0, 2, 2)]
        run = measured("any", self.LOG, slots=SLOTS, served=told)
        assert dict(run.figures)["first token, p50 / p99"] == "1.5 s / 1.5 s"
        assert {tenant.tenant: tenant.first_tokens for tenant in run.tenants} == {"a": (1.5,), "b": ()}

    def test_a_run_that_lasts_has_the_papers_differences_whatever_its_clock_shows_at_first(self):
        served = [Served("a", 1000.0, 1000.0, 1100.0, 100, 0), Served("b", 1030.0, 1190.0, 1200.0, 100, 0)]
        log = log_of([Step("arrive", "a", 1, 0), Step("arrive", "b", 1, 0)])
        first, last = log.events
        shifted = Log(log.header, (replace(first, t=1000.0), replace(last, t=1200.0)))
        figures = dict(measured("any", shifted, slots=SLOTS, served=served).figures)
        assert figures["Max Diff, tokens/s"] == "1.0"  # What a got and b did not, which had asked for more than that.
