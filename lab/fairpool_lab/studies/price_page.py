"""The page of the study of the price of order: its tables from the figures, and what they say."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from fairpool_lab.policies import POLICIES
from fairpool_lab.report.chart import About, Axis
from fairpool_lab.studies import price
from fairpool_lab.studies.drawing import rows
from fairpool_lab.studies.price import ALL_ORDERS_AT, FAIR, IN_ORDER, Figure, Found
from fairpool_lab.studies.study import DEALT, Given, Listed, Made, Traces, Walk

NAME: Final = "price"
DRAWING: Final = "price-throughput.svg"


def page(found: Found) -> str:
    """The study's page, from its figures."""
    return _WORDS.format(
        drawing=DRAWING,
        files=" \\\n".join(f"  {name}" for name in found.requests),
        requests=f"{sum(found.requests.values()):,}",
        dealt=DEALT,
        endpoints=price.ENDPOINTS,
        engine=price.ENGINE.upper(),
        load=price.LOAD,
        slots=ALL_ORDERS_AT,
        beside="\n".join(_beside(found)),
        first=f"{price.FIRST:,}",
        least=f"{min(_ratios(found)):.3f}",
        most=f"{max(_ratios(found)):.3f}",
        rpm=f"{max(each.free for each in found.figures if each.order == 'rpm'):.0%}",
        stops="\n".join(_stops(found)),
        orders="\n".join(_orders(found)),
        cached="\n".join(_cached(found)),
    )


def ratio(found: Found, trace: str, slots: int, order: str = FAIR) -> float:
    """The throughput under an order over that in order of arrival."""
    return found.of(trace, slots, order).tokens_per_second / found.of(trace, slots, IN_ORDER).tokens_per_second


def drawing(found: Found) -> str:
    """Throughput over that in order of arrival, by order and trace."""
    traces = list(found.requests)
    ratios = {order: [ratio(found, trace, ALL_ORDERS_AT, order) for trace in traces] for order in POLICIES}
    return rows(
        About(NAME, "Throughput over that in order of arrival", "The figures are in the last table of the page."),
        Axis("of the throughput in order of arrival", 0.0, 1.05 * max(map(max, ratios.values()))),
        list(map(_short, traces)),
        list(ratios.items()),
        left=104,
    )


def _make(given: Sequence[Given], walk: Walk) -> Made:
    found = price.study(given, walk)
    return Made(found, page(found), {DRAWING: drawing(found)})


LISTED: Final = Listed(NAME, "what order costs in throughput and in time to the first token", Traces.SOME, _make)


def _both(found: Found) -> Iterable[tuple[Figure, Figure]]:
    """Order of arrival and fair order, for each trace and number of slots."""
    for each in found.figures:
        if each.order == IN_ORDER:
            yield each, found.of(each.trace, each.slots, FAIR)


def _ratios(found: Found) -> list[float]:
    return [fair.tokens_per_second / arrival.tokens_per_second for arrival, fair in _both(found)]


def _beside(found: Found) -> Iterable[str]:
    for arrival, fair in _both(found):
        yield (
            f"| {_short(arrival.trace)} | {arrival.slots} | {arrival.tokens_per_second:,.0f} "
            f"| {fair.tokens_per_second / arrival.tokens_per_second:.3f} | {_pair(arrival, fair, 'first_token_p50')} "
            f"| {_pair(arrival, fair, 'first_token_p99')} | {_pair(arrival, fair, 'tenants_first_token')} "
            f"| {arrival.share_error:.1%} → {fair.share_error:.1%} |"
        )


def _stops(found: Found) -> Iterable[str]:
    for arrival, fair in _both(found):
        yield (
            f"| {_short(fair.trace)} | {fair.slots} | {arrival.stops:,} → {fair.stops:,} "
            f"| {arrival.stopped:.0%} → {fair.stopped:.0%} | {fair.free:.1%} |"
        )


def _orders(found: Found) -> Iterable[str]:
    """The throughput of every order beside that in order of arrival, by trace."""
    yield f"| | {' | '.join(map(_short, found.requests))} |"
    yield f"|---|{'--:|' * len(found.requests)}"
    for order in POLICIES:
        ratios = (f"{ratio(found, trace, ALL_ORDERS_AT, order):.3f}" for trace in found.requests)
        yield f"| {order} | {' | '.join(ratios)} |"


def _cached(found: Found) -> Iterable[str]:
    for trace in found.requests:
        if found.of(trace, ALL_ORDERS_AT, IN_ORDER).cached:
            told = (f"{order} {found.of(trace, ALL_ORDERS_AT, order).cached:.1%}" for order in (IN_ORDER, FAIR, "dlpm"))
            yield f"{_short(trace)}: {', '.join(told)}."


def _pair(arrival: Figure, fair: Figure, field: str) -> str:
    return f"{getattr(arrival, field):.1f} → {getattr(fair, field):.1f}"


def _short(trace: str) -> str:
    """What a trace's file is called, without how it is written."""
    return trace.removesuffix(".gz").rpartition(".")[0]


_WORDS: Final = """\
# The price of order

Whoever decides whose request goes next may keep GPUs waiting, fill them worse, or spoil their caches. What does it
cost in throughput and in time to the first token that requests do not go in the order in which they came?

```sh
fairpool lab study price --out docs/studies --trace \\
{files}
```

makes this page, in about a minute of one core.

The first {first} requests of each trace, but for what is too long for the engine ({requests} in all), are played on
{endpoints} simulated {engine}s, so fast that {load} times as much is asked for as these give. Traces that name no
tenants are dealt to {dealt}. Prompts that tell what they begin with meet a prefix cache. Costs are estimated by the
gateway's default.

## Fair order beside order of arrival

Throughput in tokens per second (an output token counts twice) until all is done; times in seconds, arrival order →
fair.

| trace | slots | tokens/s, arrival | fair / arrival | first token, p50 | p99 | median tenant's p50 | share error |
|---|--:|--:|--:|--:|--:|--:|--:|
{beside}

- **Throughput**: fair order gives between {least} and {most} times what order of arrival gives, less here and more
  there: it changes which requests meet in a batch, and which are left for the end.
- **Time to the first token**: somebody has to wait when more is asked for than there is. In fair order the median
  tenant waits far less, the median request less or as long, and the last ones longer.
- **Slots**: with few the engines do less, everybody waits, and order matters most. With so many that nobody waits in
  the gateway both orders are the same, and whatever waits does so inside the engines, in order of arrival.

## Stops at the head

If the head finds no free slot, dispatching stops, and nobody overtakes. An event *stops* if somebody waits after it;
*stopped* is the part of the time in which somebody waits, both arrival order → fair; *free* is the part of the slots
that was free meanwhile, in fair order.

| trace | slots | stops | stopped | free |
|---|--:|--:|--:|--:|
{stops}

No slot was ever free while somebody waited: all endpoints serve the same models, so a head that finds no slot would
have left none to those behind it. What limits rates is another matter: under `rpm` up to {rpm} of the slots were free
while requests waited.

## Other orders

Throughput over that in order of arrival, with {slots} slots:

{orders}

![Throughput of each order over that in order of arrival, by trace]({drawing})

DLPM overtakes to find prompts in the caches. The part of prompts that the caches had, with {slots} slots:
{cached}

Here that is next to nothing: what these {first} requests share is little, and caches hold little beside such long
prompts. What overtaking gains where they share more, this page does not tell.

What is not here: what a decision itself costs, which is the benchmark's matter; several GPUs to an engine; traces
that are longer than {first} requests.
"""
