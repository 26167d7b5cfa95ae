"""Isolation: how long does a tenant wait that asks for a fifth of its share, while others ask for too much?

A victim and two aggressors have equal weights; together they ask for 150 % of what the pool can serve, over 1,000 mean
service times. The goal: of the victim's waits the 99th percentile is at most a fifth of what it is in order of arrival,
and at most three times what it is in a fluid GPS (`measures.fluid_waits`). The same is asked where aggressors come in
bursts, and where the victim does so too. Sizes are those of a real trace; as the victim sends few requests, each case
is played at several seeds, and all of its waits are taken together.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from itertools import product
from random import Random
from typing import Final

import msgspec

from fairpool_gateway.cost import CostModel, Used
from fairpool_lab.comparison import engines
from fairpool_lab.measures import served
from fairpool_lab.measures.distribution import Distribution
from fairpool_lab.measures.fluid_waits import Work, fluid_waits
from fairpool_lab.measures.waits import waits
from fairpool_lab.report.chart import About, Axis
from fairpool_lab.report.scales import seconds
from fairpool_lab.simulation import ESTIMATORS, Ask, Scenario
from fairpool_lab.studies.drawing import rows
from fairpool_lab.studies.order import Order
from fairpool_lab.studies.study import Given, Listed, Made, Traces, Walk, quietly
from fairpool_lab.traces import Trace

NAME: Final = "isolation"
DRAWING: Final = "isolation-waits.svg"
VICTIM: Final = "victim"
WEIGHTS: Final = {VICTIM: 100, "one": 100, "other": 100}
LOAD: Final = 1.5
OF_ITS_SHARE: Final = 0.2
SERVICE_TIMES: Final = 1_000

TO_ARRIVAL_ORDER: Final = 1 / 5
TO_FLUID: Final = 3.0
"""The goals: the greatest parts of the others' waits that are good enough."""


class Pattern(msgspec.Struct, frozen=True):
    """How requests come: one by one at random times, or so many at a time."""

    title: str
    victims: int
    aggressors: int


PATTERNS: Final = (
    Pattern("one by one", 1, 1),
    Pattern("aggressors in bursts of 50", 1, 50),
    Pattern("all in bursts, the victim's of 5", 5, 50),
)


class Pool(msgspec.Struct, frozen=True):
    """What serves: an engine, its slots, the cost that it serves in a second, and how many seeds are played."""

    title: str
    engine: str
    slots: int
    rate: float
    seeds: int


POOLS: Final = (
    Pool("one slot", "fixed:1000", 1, 1000.0, 20),
    Pool("16 slots", "fixed:62.5", 16, 1000.0, 20),
    Pool("A10G, 25 slots", "a10g", 25, 1300.0, 5),
)
"""The server of the theory, the same in 16 parts, and a GPU, which serves about so much when it is full: 1,315 tokens
per second in the study of the VTC paper's headline."""


IN_ORDER: Final = Order("arrival order", "arrival-order")
SFQ: Final = Order("SFQ", "sfq")
FLUID: Final = "fluid GPS"
ORDERS: Final = (SFQ, Order("SFQ, costs known", "sfq", "oracle"), Order("VTC", "vtc"), IN_ORDER)


class Figure(msgspec.Struct, frozen=True):
    """What became of the victim under one order; times in seconds.

    Attributes:
        requests: how many it sent.
        wait_p50: of its waits from arrival to dispatch.
        wait_p99: the same.
        answer_p99: from arrival to the last token.
        slowdown_p50: how many times longer its answers took than in an idle engine.
        slowdown_p99: the same.
    """

    pool: str
    pattern: str
    order: str
    requests: int
    wait_p50: float
    wait_p99: float
    answer_p99: float
    slowdown_p50: float
    slowdown_p99: float


class Study(msgspec.Struct, frozen=True):
    """All figures; the fluid's as those of an order, in which a slowdown is against the whole rate."""

    sizes: int
    figures: tuple[Figure, ...]

    def of(self, pool: str, pattern: str, order: str) -> Figure:
        """That of one case."""
        return next(each for each in self.figures if (each.pool, each.pattern, each.order) == (pool, pattern, order))


def study(
    trace: Trace, walk: Walk = quietly, *, pools: Sequence[Pool] = POOLS, patterns: Sequence[Pattern] = PATTERNS
) -> Study:
    """Measure."""
    sizes = [(max(1, request.input_tokens), request.output_tokens) for request in trace]
    parts = tuple(product(pools, patterns, (*ORDERS, None)))
    return Study(
        len(trace),
        tuple(
            in_fluid(pool, pattern, sizes) if order is None else played(pool, pattern, order, sizes)
            for pool, pattern, order in walk(
                parts, lambda part: f"{part[0].title}, {part[1].title}, {part[2].title if part[2] else FLUID}"
            )
        ),
    )


def within(figure: Figure, in_order: Figure, fluid: Figure) -> bool:
    """Whether the goal is met."""
    return figure.wait_p99 <= TO_ARRIVAL_ORDER * in_order.wait_p99 and figure.wait_p99 <= TO_FLUID * fluid.wait_p99


def page(found: Study) -> str:
    """The study's page, from its figures."""
    return _WORDS.format(
        drawing=DRAWING,
        sizes=f"{found.sizes:,}",
        seeds=", ".join(f"{pool.seeds} ({pool.title})" for pool in POOLS),
        goals="\n".join(_goals(found)),
        figures="\n".join(_figures(found)),
    )


def drawing(found: Study) -> str:
    """The 99th percentile of the victim's waits, case by case."""
    orders = (SFQ.title, FLUID, IN_ORDER.title)
    waited = {case: [found.of(*case, order).wait_p99 for order in orders] for case in _cases(found)}
    every = [wait for case in waited.values() for wait in case]
    drawn: list[tuple[str, Sequence[float]]] = []
    for pool in dict.fromkeys(pool for pool, _ in waited):
        drawn.append((pool, ()))
        drawn += [(pattern, waits) for (of, pattern), waits in waited.items() if of == pool]
    return rows(
        About(NAME, "The victim's waits, 99th percentile", "The figures are in the table of the page."),
        Axis("waited", min(every) / 4, 2 * max(every), logarithmic=True, written=seconds),
        orders,
        drawn,
        left=200,
    )


def _make(given: Sequence[Given], walk: Walk) -> Made:
    (of,) = given
    found = study(of.trace, walk)
    return Made(found, page(found), {DRAWING: drawing(found)})


LISTED: Final = Listed(NAME, "how long a light tenant waits beside heavy ones", Traces.ONE, _make)


def demand(pool: Pool, pattern: Pattern, sizes: Sequence[tuple[int, int]], seed: int) -> list[Ask]:
    """Who asks for what in one run."""
    chance = Random(f"isolation {seed}")  # noqa: S311 - to be repeatable
    mean = sum(map(_cost, sizes)) / len(sizes)
    victims = OF_ITS_SHARE / len(WEIGHTS)
    asks = []
    for tenant in WEIGHTS:
        load = victims if tenant == VICTIM else (LOAD - victims) / (len(WEIGHTS) - 1)
        together = pattern.victims if tenant == VICTIM else pattern.aggressors
        now = 0.0
        while (now := now + chance.expovariate(load * pool.rate / mean / together)) < SERVICE_TIMES * mean / pool.rate:
            asks += [Ask(now, tenant, *chance.choice(sizes)) for _ in range(together)]
    return sorted(asks, key=lambda ask: ask.arrival)


def played(pool: Pool, pattern: Pattern, order: Order, sizes: Sequence[tuple[int, int]]) -> Figure:
    """What becomes of the victim under an order."""
    engine = engines.named(pool.engine)
    waited: list[float] = []
    took: list[float] = []
    slower: list[float] = []
    for seed in range(pool.seeds):
        scenario = Scenario(
            partial(engine.make, CostModel(), None),
            demand(pool, pattern, sizes, seed),
            slots=pool.slots,
            weights=WEIGHTS,
            estimator=ESTIMATORS[order.estimator].make,
        )
        run = order.run(scenario)
        waited += waits(run.log.events)[VICTIM].values
        alone = served.slowdowns(
            run.served(), lambda each: engine.alone(CostModel(), Used(each.input_tokens, each.output_tokens))
        )
        slower += alone[VICTIM].values
        took += [each.ended - each.arrived for each in run.served() if each.tenant == VICTIM]
    return _figure(pool, pattern, order.title, waited, took, slower)


def in_fluid(pool: Pool, pattern: Pattern, sizes: Sequence[tuple[int, int]]) -> Figure:
    """What would become of it in a fluid GPS of the same rate."""
    waited: list[float] = []
    took: list[float] = []
    slower: list[float] = []
    for seed in range(pool.seeds):
        asks = demand(pool, pattern, sizes, seed)
        work = [Work(ask.arrival, ask.tenant, _cost((ask.input_tokens, ask.output_tokens))) for ask in asks]
        found = fluid_waits(work, WEIGHTS, pool.rate)[VICTIM]
        waited += found
        alone = [each.cost / pool.rate for each in work if each.tenant == VICTIM]
        took += [wait + seconds for wait, seconds in zip(found, alone, strict=True)]
        slower += [1 + wait / seconds for wait, seconds in zip(found, alone, strict=True)]
    return _figure(pool, pattern, FLUID, waited, took, slower)


def _figure(
    pool: Pool,
    pattern: Pattern,
    order: str,
    waited: Sequence[float],
    took: Sequence[float],
    slower: Sequence[float],
) -> Figure:
    wait, slowdown = Distribution.of(waited), Distribution.of(slower)
    return Figure(
        pool=pool.title,
        pattern=pattern.title,
        order=order,
        requests=len(wait.values),
        wait_p50=wait.p50,
        wait_p99=wait.p99,
        answer_p99=Distribution.of(took).p99,
        slowdown_p50=slowdown.p50,
        slowdown_p99=slowdown.p99,
    )


def _cost(size: tuple[int, int]) -> int:
    return size[0] + 2 * size[1]


def _cases(found: Study) -> Iterable[tuple[str, str]]:
    return dict.fromkeys((each.pool, each.pattern) for each in found.figures)


def _goals(found: Study) -> Iterable[str]:
    for case in _cases(found):
        sfq, in_order, fluid = (found.of(*case, order) for order in (SFQ.title, IN_ORDER.title, FLUID))
        yield (
            f"| {' | '.join(case)} | {sfq.wait_p99:.2f} | {in_order.wait_p99:.0f} | {fluid.wait_p99:.2f} "
            f"| 1/{in_order.wait_p99 / sfq.wait_p99:.0f} | {sfq.wait_p99 / fluid.wait_p99:.2f} "
            f"| {'yes' if within(sfq, in_order, fluid) else '**no**'} |"
        )


def _figures(found: Study) -> Iterable[str]:
    for case in _cases(found):
        for order in (FLUID, *(each.title for each in ORDERS)):
            figure = found.of(*case, order)
            yield (
                f"| {' | '.join(case)} | {order} | {figure.wait_p50:.2f} | {figure.wait_p99:.2f} "
                f"| {figure.answer_p99:.1f} | {figure.slowdown_p50:.1f} | {figure.slowdown_p99:,.0f} |"
            )


_WORDS: Final = """\
# Isolation

How long does a tenant wait that asks for a fifth of its share, while others ask for too much? A victim and two
aggressors have equal weights; together they ask for 150 % of what the pool can serve, over 1,000 mean service times.
The goal: the 99th percentile of the victim's waits, from arrival to dispatch, is at most 1/5 of what it is in order of
arrival, and at most 3 times what it is in a fluid GPS, which serves all tenants at once.

```sh
fairpool lab study isolation --trace vtc_real_trace.csv --out docs/studies
```

makes this page, in about a minute and a half of one core. Everybody's sizes are drawn from the {sizes} requests of the
VTC paper's trace. As the victim sends few, each case is played at several seeds, {seeds},
and its waits of all of them are taken together. SFQ goes by the gateway's own estimates, unless costs are said to be
known. All times are in seconds.

| pool | requests come | SFQ, p99 | arrival order | fluid GPS | of arrival order's | times the fluid's | goal met |
|---|---|--:|--:|--:|--:|--:|---|
{goals}

![The 99th percentile of the victim's waits, by pool and by how requests come]({drawing})

The goal is met in every case. In order of arrival a tenant that asks for little waits as long as everybody, and at
150 % of the load that grows for as long as it lasts. Under SFQ it waits for a slot to come free, and for its own
requests. In a fluid nobody waits for a slot, but is served more slowly while others are there, and a wait is what a
request takes longer than alone; that is about as much.

The goal is about waits. Once a request has its slot, the slot has a part of the pool's rate: with 16 slots and on the
A10G the victim's answers take longer than in the fluid, which would give one that is alone the whole rate.

## All figures

A slowdown is how many times longer an answer took, from arrival to the last token, than in an engine that does nothing
else; in the fluid, than at its whole rate. Where there are 16 slots, that engine too has but one of them, so slowdowns
are not to be compared between pools. The 99th percentile tells of requests of a few tokens: alone they are done at
once, so any wait is many times as long.

| pool | requests come | order | wait p50 | wait p99 | answer p99 | slower p50 | slower p99 |
|---|---|---|--:|--:|--:|--:|--:|
{figures}

VTC isolates about as well as SFQ: who asks for little is behind all others by either's count. The A10G is compared with
a fluid of 1,300 tokens per second, of which 150 % are asked for: about what that GPU serves of this trace when full.
"""
