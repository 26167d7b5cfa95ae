"""Weights: does every backlogged tenant get service in proportion to its weight, and is any slot left free for that?

Tenants that always wait, at 1:1, 1:2:4 and 1:100, and at weights that change while they wait. Their requests are those
of a real trace, dealt so that the less a tenant weighs, the larger its requests are: who counts requests instead of
cost is caught by that. Shares are in true cost, dispatched until the clients stop, and compared with the weights alone.
They count from when all of them wait: whoever asks first finds slots free, and owes nobody for them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate, pairwise, product
from typing import Final

import msgspec

from fairpool_gateway.cost import CostModel
from fairpool_lab.comparison import engines
from fairpool_lab.measures import history, occupancy, shares
from fairpool_lab.report.chart import About, Axis
from fairpool_lab.simulation import ESTIMATORS, Clients, Reweigh, Run, Scenario
from fairpool_lab.studies.drawing import rows
from fairpool_lab.studies.order import Order
from fairpool_lab.studies.study import Given, Listed, Made, Traces, Walk, quietly
from fairpool_lab.traces import Trace

NAME: Final = "weights"
DRAWING: Final = "weights-off.svg"
TENANTS: Final = ("a", "b", "c")
CLIENTS: Final = 64
"""Of each tenant, so that it always has requests that wait."""


class Case(msgspec.Struct, frozen=True):
    """Weights of the first tenants in one stretch of time after another, all equally long."""

    title: str
    stretches: tuple[tuple[int, ...], ...]

    @property
    def tenants(self) -> tuple[str, ...]:
        """Those that take part."""
        return TENANTS[: len(self.stretches[0])]


CASES: Final = (
    Case("1:1", ((1, 1),)),
    Case("1:2:4", ((1, 2, 4),)),
    Case("1:100", ((1, 100),)),
    Case("1:1, then 1:4, then 4:1", ((1, 1), (1, 4), (4, 1))),
)


ORDERS: Final = (
    Order("SFQ, costs known", "sfq", "oracle"),
    Order("SFQ, estimates", "sfq"),
    Order("WFQ, costs known", "wfq", "oracle"),
    Order("DRR, costs known", "drr", "oracle"),
    Order("VTC", "vtc"),
    Order("stride", "stride"),
    Order("round robin", "round-robin"),
    Order("arrival order", "arrival-order"),
)


class Pool(msgspec.Struct, frozen=True):
    """What serves: an engine, its slots, how long clients go on, in seconds, and under which orders."""

    engine: str
    slots: int
    seconds: float
    orders: tuple[Order, ...]


POOLS: Final = (Pool("fixed:250", 4, 5_000.0, ORDERS), Pool("a10g", 25, 600.0, (*ORDERS[:2], ORDERS[-1])))
"""The server of the theory, and a GPU."""


class Figure(msgspec.Struct, frozen=True):
    """What one order made of one case.

    Attributes:
        error: the greatest `|received - due|` of a tenant in a stretch, as a part of all service in it.
        off: the same as a part of what was due to that tenant.
        taken: the part of the slots that was taken while somebody waited.
        tokens_per_second: true cost dispatched in a second.
    """

    pool: str
    case: str
    order: str
    requests: int
    error: float
    off: float
    taken: float
    tokens_per_second: float


class Study(msgspec.Struct, frozen=True):
    """All figures, and of how many requests their sizes are."""

    sizes: int
    figures: tuple[Figure, ...]


def study(trace: Trace, walk: Walk = quietly, pools: Sequence[Pool] = POOLS) -> Study:
    """Measure."""
    parts = tuple((pool, case, order) for pool in pools for case, order in product(CASES, pool.orders))
    return Study(
        len(trace),
        tuple(
            figure(pool, case, order, order.run(scenario(trace, pool, case, order)))
            for pool, case, order in walk(parts, lambda part: f"{part[0].engine}, {part[1].title}, {part[2].title}")
        ),
    )


def page(found: Study) -> str:
    """The study's page, from its figures."""
    theory, gpu = POOLS
    return _WORDS.format(
        drawing=DRAWING,
        sizes=f"{found.sizes:,}",
        clients=CLIENTS,
        seconds=f"{theory.seconds:,.0f}",
        requests=f"{min(each.requests for each in found.figures if each.pool == theory.engine):,}",
        slots=theory.slots,
        theory="\n".join(_table(found, theory)),
        gpu_seconds=f"{gpu.seconds:,.0f}",
        gpu_slots=gpu.slots,
        gpu="\n".join(_table(found, gpu)),
        estimated=_percent(max(each.off for each in found.figures if each.order == ORDERS[1].title)),
        taken=f"{100 * min(each.taken for each in found.figures):.2f} %",
    )


def drawing(found: Study) -> str:
    """How far the tenant that is furthest off is from its due, by order and case, on the server of the theory."""
    theory, _ = POOLS
    figures = [each for each in found.figures if each.pool == theory.engine]
    off = {order: [100 * each.off for each in figures if each.order == order.title] for order in theory.orders}
    every = [part for parts in off.values() for part in parts]
    return rows(
        About(NAME, "How far tenants are from their due", "The figures are in the first table of the page."),
        Axis("% of its due that the furthest is off", min(every) / 2, 2 * max(every), logarithmic=True),
        [case.title for case in CASES],
        [(order.title, parts) for order, parts in off.items()],
        left=130,
    )


def _make(given: Sequence[Given], walk: Walk) -> Made:
    (of,) = given
    found = study(of.trace, walk)
    return Made(found, page(found), {DRAWING: drawing(found)})


LISTED: Final = Listed(NAME, "shares by weight, and slots left free for them", Traces.ONE, _make)


def scenario(trace: Trace, pool: Pool, case: Case, order: Order) -> Scenario:
    """The demand of a case, in front of a pool."""
    by_size = sorted(trace, key=lambda request: -request.tokens)
    part = len(by_size) // len(case.tenants)
    ends = _ends(pool, case)
    return Scenario(
        lambda: engines.named(pool.engine).make(CostModel(), None),
        clients=tuple(
            Clients(
                tenant,
                CLIENTS,
                [
                    (max(1, request.input_tokens), request.output_tokens)
                    for request in by_size[place * part : (place + 1) * part]
                ],
                until=pool.seconds,
            )
            for place, tenant in enumerate(case.tenants)
        ),
        slots=pool.slots,
        weights=dict(zip(case.tenants, case.stretches[0], strict=True)),
        changes=tuple(
            Reweigh(at, tenant, weight)
            for at, stretch in zip(ends, case.stretches[1:], strict=False)
            for tenant, weight in zip(case.tenants, stretch, strict=True)
        ),
        estimator=ESTIMATORS[order.estimator].make,
    )


def figure(pool: Pool, case: Case, order: Order, run: Run) -> Figure:
    """What a run says about its order."""
    use = history.really_used(1, 2)
    told = [shares.shares(run.log, until=at, measure=use) for at in (0.0, *_ends(pool, case))]
    received = [{each.tenant: each.received for each in at.tenants} for at in told]
    error = off = 0.0
    for (before, after), stretch in zip(pairwise(received), case.stretches, strict=True):
        got = {tenant: after[tenant] - before[tenant] for tenant in case.tenants}
        for tenant, weight in zip(case.tenants, stretch, strict=True):
            due = weight / sum(stretch)
            away = abs(got[tenant] / sum(got.values()) - due)
            error, off = max(error, away), max(off, away / due)
    lasting = [event for event in run.log.events if event.t <= pool.seconds]
    return Figure(
        pool=pool.engine,
        case=case.title,
        order=order.title,
        requests=sum(each.dispatched for each in told[-1].tenants),
        error=error,
        off=off,
        taken=occupancy.occupancy(lasting).utilisation_while_waiting(pool.slots),
        tokens_per_second=told[-1].served / pool.seconds,
    )


def _ends(pool: Pool, case: Case) -> list[float]:
    """When each stretch ends."""
    return list(accumulate([pool.seconds / len(case.stretches)] * len(case.stretches)))


def _table(found: Study, pool: Pool) -> Iterable[str]:
    yield f"| | {' | '.join(case.title for case in CASES)} |"
    yield f"|---|{'--:|' * len(CASES)}"
    for order in pool.orders:
        figures = (each for each in found.figures if (each.pool, each.order) == (pool.engine, order.title))
        yield f"| {order.title} | {' | '.join(f'{_percent(each.off)} ({_percent(each.error)})' for each in figures)} |"


def _percent(part: float) -> str:
    return f"{100 * part:,.2f} %" if part < 1 else f"{100 * part:,.0f} %"


_WORDS: Final = """\
# Weights

Does every backlogged tenant get service in proportion to its weight, and is any slot left free for that? Tenants that
always wait, with {clients} clients each that ask again as soon as they are answered, at the weights 1:1, 1:2:4 and
1:100, and at weights that change twice while they wait. Their requests have the sizes of the {sizes} of the VTC paper's
trace, dealt so that the less a tenant weighs at first, the larger its requests are.

```sh
fairpool lab study weights --trace vtc_real_trace.csv --out docs/studies
```

makes this page, in about a minute of one core. What counts is the true cost of what was dispatched, from when all
of them wait until the clients stop. A cell says how far the tenant that is furthest off is from its due by weight, as a
part of that due, and in brackets as a part of all service; where weights change, in the worst third.

## Shares

{slots} slots that each serve 250 tokens per second for {seconds} s, so {requests} requests or more:

{theory}

![How far the furthest tenant is from its due, by order and weights]({drawing})

An A10G with {gpu_slots} slots, for {gpu_seconds} s:

{gpu}

Where costs are known, SFQ, like WFQ and DRR, gives every tenant its due to within a request or two, so the longer it
is watched, the closer. At 1:100 the light tenant gets one part in 101, and its requests are large: there a request more
or less is a part of its due that can be seen, and next to nothing of all service. A weight that changes counts from the
next charge, so where costs are known each third is as true as if it had always been so. Estimates add their own error,
up to {estimated} of a tenant's due here. Orders that count requests are off by as much as their sizes differ.

## Slots

Of the slots {taken} were taken while somebody waited, under the order that has the least of it: no order leaves one
free, whatever the weights.
"""
