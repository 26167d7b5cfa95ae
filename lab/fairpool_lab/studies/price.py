"""The price of order: what does it cost in throughput and in time to the first token to let others go first?

Traces are played on two GPUs with continuous batching, fast enough to ask for more than these give, in order of
arrival, fairly, and under every other order; with fewer slots than fill the GPUs, and with more. A prefix cache is
there where a trace tells what prompts begin with.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from statistics import median
from typing import Final

import msgspec

from fairpool_lab.comparison import engines
from fairpool_lab.comparison.outcome import Outcome, measure
from fairpool_lab.comparison.setup import Setup
from fairpool_lab.measures import occupancy
from fairpool_lab.policies import POLICIES
from fairpool_lab.simulation import Run, simulate
from fairpool_lab.studies.study import Given, Walk, owned, quietly
from fairpool_lab.traces import Trace

ENGINE: Final = "a100"
ENDPOINTS: Final = 2
SLOTS: Final = (8, 32, 128)
"""Of each endpoint: fewer than fill the GPU, about as many, and more than most traces' requests fit."""

ALL_ORDERS_AT: Final = 32
FIRST: Final = 1_000
"""Requests of each trace that are played."""

LOAD: Final = 1.25
"""How many times as much is asked for as the endpoints give when they are never idle."""

BLOCK: Final = 512
"""Tokens of a block of the prefix cache, as the traces that tell blocks have them."""

IN_ORDER: Final = "arrival-order"
FAIR: Final = "sfq"


class Figure(msgspec.Struct, frozen=True):
    """What one order made of one trace with so many slots.

    Attributes:
        trace: what was played.
        slots: of each endpoint.
        order: whose request went next.
        tokens_per_second: cost that was completed in a second of the whole run.
        first_token_p50: seconds from arrival to the first token, over all requests.
        first_token_p99: the same.
        tenants_first_token: the median of the tenants' medians.
        share_error: the greatest difference between a tenant's received and entitled share.
        stops: how many times dispatching stopped at a head that found no free slot.
        stopped: the part of the run in which one waited.
        free: the part of the slots that was free meanwhile.
        cached: the part of prompts that prefix caches had.
    """

    trace: str
    slots: int
    order: str
    tokens_per_second: float
    first_token_p50: float
    first_token_p99: float
    tenants_first_token: float
    share_error: float
    stops: int
    stopped: float
    free: float
    cached: float


class Found(msgspec.Struct, frozen=True):
    """All figures, and by trace how many of its requests they are of."""

    requests: dict[str, int]
    figures: tuple[Figure, ...]

    def of(self, trace: str, slots: int, order: str) -> Figure:
        """One figure."""
        return next(each for each in self.figures if (each.trace, each.slots, each.order) == (trace, slots, order))


def study(given: Sequence[Given], walk: Walk = quietly, *, slots: Sequence[int] = SLOTS) -> Found:
    """Measure."""
    cut = [Given(each.name, fitting(owned(each.trace)[:FIRST])) for each in given]
    speeds = {each.name: speed(each.trace) for each in walk(cut, lambda each: f"{each.name}, swamped")}
    parts = [
        (each, number, order)
        for each, number, order in product(cut, slots, POLICIES)
        if number == ALL_ORDERS_AT or order in (IN_ORDER, FAIR)
    ]
    played = walk(parts, lambda part: f"{part[0].name}, {part[1]} slots, {part[2]}")
    figures = tuple(figure(each, number, order, speeds[each.name]) for each, number, order in played)
    return Found({each.name: len(each.trace) for each in cut}, figures)


def fitting(trace: Trace) -> Trace:
    """The requests that the endpoints can hold."""
    engine = engines.named(ENGINE)
    return tuple(request for request in trace if Setup.fits(engine, request))


def speed(trace: Trace) -> float:
    """How fast to play a trace, so that `LOAD` times what the endpoints give is asked for."""
    at_once = tuple(replace(request, arrival=0.0) for request in trace)
    _, outcome = _run(at_once, ALL_ORDERS_AT, IN_ORDER, 1.0)
    seconds = trace[-1].arrival - trace[0].arrival
    return LOAD * outcome.tokens_per_second * seconds / sum(request.tokens for request in trace)


def figure(given: Given, slots: int, order: str, fast: float) -> Figure:
    """One run's."""
    run, outcome = _run(given.trace, slots, order, fast)
    taken = occupancy.occupancy(run.log.events)
    first = outcome.first_token
    assert first is not None
    return Figure(
        trace=given.name,
        slots=slots,
        order=order,
        tokens_per_second=outcome.tokens_per_second,
        first_token_p50=first.p50,
        first_token_p99=first.p99,
        tenants_first_token=median(each.first_token.p50 for each in outcome.tenants if each.first_token is not None),
        share_error=outcome.greatest_difference,
        stops=sum(waiting > 0 for waiting in taken.waiting),
        stopped=_stopped(taken),
        free=1 - outcome.utilisation,
        cached=outcome.cached_share,
    )


def _run(trace: Trace, slots: int, order: str, fast: float) -> tuple[Run, Outcome]:
    setup = Setup(
        trace=trace,
        engine=engines.named(ENGINE),
        endpoints=ENDPOINTS,
        slots=slots,
        weights={},
        estimator="TenantAverage",
        speed=fast,
        block_tokens=BLOCK if any(request.prefix for request in trace) else None,
    )
    run = simulate(setup.scenario(), POLICIES[order].factory)
    return run, measure(POLICIES[order], setup, run)


def _stopped(taken: occupancy.Occupancy) -> float:
    """The part of the time in which somebody waited."""
    ends = (*taken.times[1:], taken.times[-1])
    waited = sum(end - since for since, end, waiting in zip(taken.times, ends, taken.waiting, strict=True) if waiting)
    return waited / (taken.times[-1] - taken.times[0])
