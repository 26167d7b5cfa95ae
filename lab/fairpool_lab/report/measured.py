"""A run as the report shows it, measured from its decision log alone, a simulated run's or a real gateway's.

Curves are drawn from a few hundred stretches of time, so a page is no larger for a longer run. What an engine knows and
no log, when tokens came, is given beside it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate, pairwise
from typing import Final

from fairpool_gateway.decision_log import Dispatch
from fairpool_lab.decisions import Event, Log
from fairpool_lab.measures import gap, history, jain, load, service_difference
from fairpool_lab.measures.distribution import Distribution
from fairpool_lab.measures.occupancy import Occupancy, occupancy
from fairpool_lab.measures.served import Served, first_tokens, of_log, slowdowns
from fairpool_lab.measures.shares import Shares, shares
from fairpool_lab.measures.waits import droughts, waits
from fairpool_lab.report.report import Curve, Distances, PolicyRun, TenantResult
from fairpool_lab.report.scales import seconds, times

_STRETCHES: Final = 240
"""Of equal length, into which a run is divided: about as many as a chart can show."""

_STRETCHES_OF_GAPS: Final = 80
"""Fewer, for the worst of a short stretch says little: whoever is far ahead need not be dispatched in it."""


def measured(
    policy: str,
    log: Log,
    *,
    slots: int,
    source: str = "",
    served: Sequence[Served] | None = None,
    alone: Callable[[Served], float] | None = None,
    measure: history.Measure = history.charged,
) -> PolicyRun:
    """Measure a run.

    Args:
        policy: its name.
        log: what was decided.
        slots: how many requests the endpoints could have outstanding, all together.
        source: where the policy is from.
        served: when the tokens of requests came, by the log's clock; None if only the log is there.
        alone: the seconds that such a request takes in an idle engine; None if that is not known.
        measure: how requests are weighed where shares are compared.
    """
    events = log.events
    began, ended = (events[0].t, events[-1].t) if events else (0.0, 0.0)
    edges = _edges(began, ended, _STRETCHES)
    part, waited, tokens = shares(log, measure=measure), waits(events), first_tokens(served or ())
    slower = slowdowns(served or (), alone) if alone else {}
    services, gaps, taken = _services(events, edges, log.header.q), gap.measure(events), occupancy(events)
    return PolicyRun(
        policy=policy,
        source=source,
        seconds=ended - began,
        until=part.until - began,
        tenants=tuple(
            TenantResult(
                tenant=tenant.tenant,
                weight=tenant.weight,
                requests=tenant.requests,
                entitled_share=tenant.entitled_share,
                received_share=tenant.received_share,
                service=_since(began, services.get(tenant.tenant, Curve())),
                waits=_values(waited, tenant.tenant),
                first_tokens=_values(tokens, tenant.tenant),
                slowdowns=_values(slower, tenant.tenant),
            )
            for tenant in part.tenants
        ),
        distances=_distances(log, _edges(began, ended, _STRETCHES_OF_GAPS), gaps, began),
        utilisation=_since(began, _utilisation(taken, edges, began, slots)),
        figures=(
            *_of_order(gaps, part),
            *_of_service(of_log(events) if served is None else served, began, part),
            *_of_waiting(events, waited, tokens, slower),
            *_of_load(events, taken, slots, measure),
        ),
    )


def _of_order(gaps: gap.Gaps, part: Shares) -> list[tuple[str, str]]:
    worst = max((pair.tightest.ratio for pair in gaps.pairs), default=0.0)
    return [
        ("pairs beyond their bound", f"{gaps.exceeded:,} of {len(gaps.pairs):,}"),
        ("greatest gap over its bound", f"{worst:.2f}"),
        ("greatest |received - entitled|", f"{part.greatest_difference:.2%}"),
        ("Jain's index of received over entitled", f"{jain.of_shares(part):.4f}"),
    ]


def _of_service(served: Sequence[Served], began: float, part: Shares) -> list[tuple[str, str]]:
    """The VTC paper's figures, of runs that are long enough for them."""
    found = service_difference.of_run(
        served, {tenant.tenant: tenant.weight for tenant in part.tenants}, began=began, until=part.until
    )
    if found is None:
        return []
    return [("Max Diff, tokens/s", f"{found.greatest:,.1f}"), ("Avg Diff, tokens/s", f"{found.mean:,.1f}")]


def _of_waiting(
    events: Sequence[Event],
    waited: Mapping[str, Distribution],
    tokens: Mapping[str, Distribution],
    slower: Mapping[str, Distribution],
) -> list[tuple[str, str]]:
    found = []
    for name, figures, written in (
        ("wait", waited, seconds),
        ("first token", tokens, seconds),
        ("slower than alone", slower, times),
    ):
        if figures:
            every = Distribution.of(value for tenant in figures.values() for value in tenant.values)
            found.append((f"{name}, p50 / p99", f"{written(every.p50)} / {written(every.p99)}"))
    longest = max(droughts(events).values(), default=0.0)
    return [*found, ("longest time backlogged without a dispatch", seconds(longest))]


def _of_load(events: Sequence[Event], taken: Occupancy, slots: int, measure: history.Measure) -> list[tuple[str, str]]:
    done = load.throughput(events, measure=measure)
    return [
        ("throughput, tokens/s", f"{done.tokens_per_second:,.0f}"),
        ("utilisation", f"{taken.utilisation(slots):.1%}"),
        ("utilisation while somebody waits", f"{taken.utilisation_while_waiting(slots):.1%}"),
    ]


def _services(events: Sequence[Event], edges: Sequence[float], q: int) -> dict[str, Curve]:
    """What each tenant had been charged at each edge, in tokens per weight."""
    charged: defaultdict[str, list[int]] = defaultdict(lambda: [0] * (len(edges) + 1))
    stretch = 0
    for event in events:
        while stretch < len(edges) and event.t > edges[stretch]:
            stretch += 1
        if isinstance(event, Dispatch):
            charged[event.tenant][min(stretch, len(edges) - 1) + 1] += event.charge
    times = (events[0].t, *edges) if events else ()
    return {
        tenant: Curve(times, tuple(units / q for units in accumulate(charges))) for tenant, charges in charged.items()
    }


def _distances(log: Log, edges: Sequence[float], gaps: gap.Gaps, began: float) -> Distances:
    starts = (began, *edges[:-1])
    worst_of_each = zip(starts, gap.over_time(log.events, edges), strict=True)
    found = [(start, worst) for start, worst in worst_of_each if worst is not None]
    times = tuple(start for start, _ in found)
    return Distances(
        gap=_since(began, Curve(times, tuple(worst.gap / log.header.q for _, worst in found))),
        bound=_since(began, Curve(times, tuple(worst.bound / log.header.q for _, worst in found))),
        pairs=len(gaps.pairs),
        exceeded=gaps.exceeded,
    )


def _utilisation(found: Occupancy, edges: Sequence[float], began: float, slots: int) -> Curve:
    """The part of the slots that were taken, on average over each stretch, which its beginning stands for."""
    spent = [taken * (end - start) for (start, end), taken in zip(pairwise(found.times), found.taken, strict=False)]
    before = (0.0, *accumulate(spent))

    def slot_seconds(until: float) -> float:
        place = bisect_right(found.times, until) - 1
        return before[place] + found.taken[place] * (until - found.times[place]) if place >= 0 else 0.0

    stretches = list(pairwise((began, *edges)))
    values = (
        (slot_seconds(end) - slot_seconds(start)) / (slots * (end - start)) if end > start else 0.0
        for start, end in stretches
    )
    return Curve(tuple(start for start, _ in stretches), tuple(values))


def _values(found: Mapping[str, Distribution], tenant: str) -> tuple[float, ...]:
    return found[tenant].values if tenant in found else ()


def _edges(began: float, ended: float, stretches: int) -> tuple[float, ...]:
    return tuple(began + (ended - began) * stretch / stretches for stretch in range(1, stretches + 1))


def _since(began: float, curve: Curve) -> Curve:
    return Curve(tuple(time - began for time in curve.times), curve.values)
