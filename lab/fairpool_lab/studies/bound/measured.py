"""The measuring: runs on traces, on adversaries, and at many slots, each with its gaps against their bounds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from fairpool_lab import traces
from fairpool_lab.comparison import engines
from fairpool_lab.comparison.setup import Setup
from fairpool_lab.measures import completed_gap, gap
from fairpool_lab.policies import POLICIES
from fairpool_lab.simulation import End, Run, Scenario, simulate
from fairpool_lab.studies.bound import adversaries, held_back
from fairpool_lab.studies.bound.adversaries import Adversary
from fairpool_lab.studies.bound.figures import Completed, OnAdversary, OnTrace, Study, Verdict, together
from fairpool_lab.studies.study import Given, Walk, owned, quietly
from fairpool_lab.traces import Trace

SFQ: Final = "sfq"
IN_ORDER: Final = "arrival-order"
COMPARED: Final = (SFQ, "vtc", "lcf", IN_ORDER)
"""What adversaries are tried on. None but the first ever promised to keep this bound."""

SLOTS: Final = 16
SERVED: Final = 0.9
"""The part of what a trace asks for that its pool can serve, so that tenants wait."""

PATIENCE: Final = 10.0
"""How long clients wait that leave: so many times as long as a request holds its slot on average."""

CONTROL: Final = 10_000
"""Requests of a trace, the first ones, that are played in order of arrival: there gaps are slow to measure."""

MANY_SLOTS: Final = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)
WINDOW: Final = 2_000
"""Requests of a trace, the first ones, that are played at each number of slots."""

SERVED_OF_WINDOW: Final = 0.5
"""The part of what these ask for that the pool can serve: less, so that some wait even beside 512 slots."""

ESTIMATORS: Final = ("oracle", "TenantAverage", "MaxTokensRatio")
DRAWN: Final = 300
"""Adversaries drawn by chance."""


def study(
    given: Sequence[Given],
    walk: Walk = quietly,
    *,
    by_hand: Sequence[Adversary] = adversaries.BY_HAND,
    drawn: int = DRAWN,
    slots: Sequence[int] = MANY_SLOTS,
) -> Study:
    """Measure."""
    by_chance = tuple(adversaries.drawn(drawn))
    return Study(
        traces=tuple(on_trace(each) for each in walk(given, lambda each: each.name)),
        adversaries=tuple(_on_adversary(each) for each in walk(by_hand, lambda each: each.name)),
        drawn={
            policy: together(dispatched(simulate(each, POLICIES[policy].factory)) for each in by_chance)
            for policy in walk(COMPARED, lambda policy: f"{drawn} drawn by chance, {policy}")
        },
        completed=tuple(completed(given, number) for number in walk(slots, lambda number: f"{number} slots")),
    )


def on_trace(given: Given) -> OnTrace:
    """What becomes of the charges on one trace."""
    trace = owned(given.trace)
    setup = contended(trace, slots=SLOTS, part=SERVED, estimator="TenantAverage")
    control = contended(trace[:CONTROL], slots=SLOTS, part=SERVED, estimator="TenantAverage")
    held = (trace[-1].arrival - trace[0].arrival) / len(trace) * SLOTS / SERVED
    impatient = _run(replace(setup, leaves_after=PATIENCE * held).scenario())
    return OnTrace(
        trace=given.name,
        requests=len(trace),
        tenants=len({request.tenant for request in trace}),
        dealt=trace is not given.trace,
        fair=dispatched(_run(setup.scenario())),
        impatient=dispatched(impatient),
        left=impatient.ended(End.CANCELLED),
        in_order=dispatched(_run(control.scenario(), IN_ORDER)),
    )


def completed(given: Sequence[Given], slots: int) -> Completed:
    """What becomes of true costs with so many slots."""
    windows = [owned(each.trace)[:WINDOW] for each in given]
    return Completed(
        slots=slots,
        traces={
            estimator: together(
                in_true_cost(
                    _run(contended(each, slots=slots, part=SERVED_OF_WINDOW, estimator=estimator).scenario()), slots
                )
                for each in windows
            )
            for estimator in ESTIMATORS
        },
        held_back=in_true_cost(_run(held_back.scenario(slots)), slots).ratio,
    )


def dispatched(run: Run) -> Verdict:
    """The verdict over a run's charges."""
    gaps = gap.measure(run.log.events)
    return Verdict(max((pair.tightest.ratio for pair in gaps.pairs), default=0.0), gaps.exceeded, len(gaps.pairs))


def in_true_cost(run: Run, slots: int) -> Verdict:
    """The verdict over the true cost of what a run completed."""
    gaps = completed_gap.measure(run.log, slots=slots, cost=adversaries.cost)
    return Verdict(
        max((each.ratio for each in gaps), default=0.0), sum(each.gap > each.bound for each in gaps), len(gaps)
    )


def _on_adversary(adversary: Adversary) -> OnAdversary:
    runs = {policy: _run(adversary.scenario, policy) for policy in COMPARED}
    return OnAdversary(
        name=adversary.name,
        attempt=adversary.attempt,
        requests=len(runs[SFQ].requests),
        verdicts={policy: dispatched(run) for policy, run in runs.items()},
    )


def _run(scenario: Scenario, policy: str = SFQ) -> Run:
    return simulate(scenario, POLICIES[policy].factory)


def contended(trace: Trace, *, slots: int, part: float, estimator: str) -> Setup:
    """A trace, with weights for its tenants, in front of a pool that can serve that part of what is asked for."""
    rate = part * sum(request.tokens for request in trace) / (trace[-1].arrival - trace[0].arrival)
    return Setup(
        trace=trace,
        engine=engines.named(f"{engines.FIXED}:{rate / slots!r}"),
        endpoints=1,
        slots=slots,
        weights=traces.weights(trace),
        estimator=estimator,
    )
