"""Does the simulator tell the truth? The same trace through the real gateway and simulated engines, and simulated.

The real side is the demonstration's: the gateway as a process, engines as processes, the official client, all over
HTTP, in real time. The simulator is given the same trace, the same pool and the same model of an engine, on fake time.
Both leave a decision log, which is measured by the same code. The real side is run twice, for it never does the same
again: what two real runs differ by is what nobody can foretell.
"""

from __future__ import annotations

import tempfile
from collections import Counter, defaultdict
from functools import partial
from pathlib import Path
from statistics import median
from typing import Final

import msgspec
from rich.console import Console

from fairpool_gateway.decision_log import Arrive, Dispatch
from fairpool_lab import processes, traces
from fairpool_lab.decisions import Log
from fairpool_lab.demo import replay, runs, scenario
from fairpool_lab.demo.scenario import ARRIVAL_ORDER, FAIR
from fairpool_lab.engine.batching import Limits
from fairpool_lab.engine.tokens import MESSAGE_TOKENS, REPLY_TOKENS, Language
from fairpool_lab.errors import OptionInvalid, ProcessFailed
from fairpool_lab.measures import gap, history, load, shares
from fairpool_lab.measures.distribution import Distribution
from fairpool_lab.policies import POLICIES
from fairpool_lab.simulation import Ask, ContinuousBatching, Scenario, simulate
from fairpool_lab.studies.study import Walk, quietly
from fairpool_lab.traces import Trace

SECONDS: Final = 240.0
"""Of the trace: its busiest stretch, that the demonstration's pool has tenants for."""

REAL: Final = 2
"""How many real runs there are."""

SIMULATED: Final = "simulated"
ORDERS: Final = {ARRIVAL_ORDER: "arrival-order", FAIR: "sfq"}
"""The demonstration's orders, each with the name that it has among the policies."""


class Tenant(msgspec.Struct, frozen=True):
    """What one tenant got: its part of the work until the last arrival, and its waits in seconds."""

    tenant: str
    weight: int
    received: float
    wait_p50: float
    wait_p99: float


class Side(msgspec.Struct, frozen=True):
    """One run.

    Attributes:
        order: whose request went next.
        side: which run.
        tenants: what each got.
        waits: of each request, in order of arrival at its tenant's queue, by tenant.
        tokens_per_second: cost that was completed in a second.
        seconds: from the first event to the last completion.
        wait_p50: over all requests.
        wait_p99: over all requests.
        share_error: the greatest difference between the received and the entitled share of a tenant.
        gap_over_bound: the worst gap between two backlogged tenants over its bound.
    """

    order: str
    side: str
    tenants: tuple[Tenant, ...]
    waits: dict[str, tuple[float, ...]]
    tokens_per_second: float
    seconds: float
    wait_p50: float
    wait_p99: float
    share_error: float
    gap_over_bound: float


class Found(msgspec.Struct, frozen=True):
    """All runs, and of how large a trace they are."""

    requests: int
    tenants: int
    compression: float
    engines: int
    slots: int
    sides: tuple[Side, ...]

    def of(self, order: str, side: str) -> Side:
        """One run."""
        return next(each for each in self.sides if (each.order, each.side) == (order, side))


class Apart(msgspec.Struct, frozen=True):
    """How far two runs are from each other.

    Attributes:
        share: the greatest difference of a tenant's share.
        wait: the median difference of a request's wait, in seconds.
        throughput: by how much the second did more in a second, as a part.
    """

    share: float
    wait: float
    throughput: float


def real(number: int) -> str:
    """What the real run of that number is called."""
    return f"real {number}"


def study(whole: Trace, walk: Walk = quietly) -> Found:
    """Measure.

    Raises:
        OptionInvalid: the demonstration's pool has no tenants for this trace.
        ProcessFailed: a real run lost requests.
    """
    trace = traces.busiest(whole, SECONDS)
    chosen = scenario.of_trace(trace)
    if strangers := {request.tenant for request in trace} - chosen.keys.keys():
        known = "vtc_real_trace.csv, or the lab's excerpt"
        raise OptionInvalid(f"--trace: the demonstration's pool has no tenant {min(strangers)}: give {known}")
    sides: list[Side] = []
    for side in walk([*map(real, range(1, REAL + 1)), SIMULATED], str):
        sides += (simulated(chosen, order) for order in ORDERS) if side == SIMULATED else really(chosen, side)
    return Found(
        requests=len(trace),
        tenants=len(chosen.weights),
        compression=chosen.compression,
        engines=chosen.engines,
        slots=chosen.config.slots.per_endpoint,
        sides=tuple(sides),
    )


def apart(one: Side, other: Side) -> Apart:
    """How far the second run is from the first."""
    received = {each.tenant: each.received for each in other.tenants}
    return Apart(
        share=max(abs(each.received - received[each.tenant]) for each in one.tenants),
        wait=median(
            abs(first - second)
            for tenant, waits in one.waits.items()
            for first, second in zip(waits, other.waits[tenant], strict=True)
        ),
        throughput=other.tokens_per_second / one.tokens_per_second - 1,
    )


def simulated(chosen: scenario.Scenario, order: str) -> Side:
    """The scenario in the simulator: prompts as long as engines count them, and time as it passes in these."""
    slots = chosen.config.slots.per_endpoint
    first, language = chosen.trace[0].arrival, Language()
    asks = tuple(
        Ask(
            (request.arrival - first) / chosen.compression * chosen.speed,
            request.tenant,
            MESSAGE_TOKENS + language.count(len(replay.content(request))) + REPLY_TOKENS,
            request.output_tokens,
            request.output_tokens,
        )
        for request in chosen.trace
    )
    played = Scenario(
        partial(ContinuousBatching, Limits(max_num_seqs=slots)),
        asks,
        endpoints=tuple(f"engine-{number}" for number in range(chosen.engines)),
        slots=slots,
        weights=chosen.config.weights(),
        default_weight=chosen.config.default_weight,
        cost=chosen.config.cost.model(),
    )
    return _side(order, SIMULATED, simulate(played, POLICIES[ORDERS[order]].factory).log, chosen.speed)


def really(chosen: scenario.Scenario, side: str) -> list[Side]:
    """The scenario in real processes, in both orders."""
    with tempfile.TemporaryDirectory(prefix="fairpool-truth-") as directory:
        outcomes = processes.run(runs.both(chosen, Path(directory), Console(quiet=True)))
    if lost := [words for outcome in outcomes for words in outcome.lost]:
        raise ProcessFailed(f"{len(lost)} requests were lost, the first one so: {lost[0]}")
    return [_side(outcome.order, side, outcome.log, 1.0) for outcome in outcomes]


def _side(order: str, side: str, log: Log, speed: float) -> Side:
    """Measure a log whose clock has so many seconds in one."""
    use = history.really_used(input_weight=1, output_weight=2)
    got, done, worst = shares.shares(log, measure=use), load.throughput(log.events, use), gap.measure(log.events).worst
    waits = _waits(log, speed)
    every = Distribution.of(wait for of_tenant in waits.values() for wait in of_tenant)
    return Side(
        order=order,
        side=side,
        tenants=tuple(_tenant(each, Distribution.of(waits[each.tenant])) for each in got.tenants),
        waits=waits,
        tokens_per_second=done.tokens_per_second * speed,
        seconds=done.seconds / speed,
        wait_p50=every.p50,
        wait_p99=every.p99,
        share_error=got.greatest_difference,
        gap_over_bound=0.0 if worst is None else worst.ratio,
    )


def _tenant(got: shares.TenantShare, waits: Distribution) -> Tenant:
    return Tenant(got.tenant, got.weight, got.received_share, waits.p50, waits.p99)


def _waits(log: Log, speed: float) -> dict[str, tuple[float, ...]]:
    """Every request's wait, in order of arrival, by tenant; to a millisecond."""
    places: dict[str, tuple[str, int]] = {}
    arrived = Counter[str]()
    found: defaultdict[str, dict[int, float]] = defaultdict(dict)
    for event in log.events:
        match event:
            case Arrive(tenant=tenant, request=request):
                places[request] = (tenant, arrived[tenant])
                found[tenant][arrived[tenant]] = event.t
                arrived[tenant] += 1
            case Dispatch(request=request):
                tenant, place = places[request]
                found[tenant][place] = round((event.t - found[tenant][place]) / speed, 3)
    return {tenant: tuple(found[tenant][place] for place in range(arrived[tenant])) for tenant in sorted(found)}
