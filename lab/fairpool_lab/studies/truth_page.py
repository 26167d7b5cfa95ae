"""The page of the study of the simulator: real and simulated figures side by side, and what they say."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from fairpool_lab.demo.scenario import ARRIVAL_ORDER, FAIR
from fairpool_lab.report.chart import About, Axis
from fairpool_lab.studies import truth
from fairpool_lab.studies.drawing import rows
from fairpool_lab.studies.study import Given, Listed, Made, Traces, Walk
from fairpool_lab.studies.truth import REAL, SIMULATED, Found, apart, real

NAME: Final = "truth"
DRAWING: Final = "truth-shares.svg"

_SIDES: Final = (*map(real, range(1, REAL + 1)), SIMULATED)


def page(found: Found) -> str:
    """The study's page, from its figures."""
    return _WORDS.format(
        drawing=DRAWING,
        requests=found.requests,
        tenants=found.tenants,
        compression=f"{found.compression:g}",
        engines=found.engines,
        slots=found.slots,
        sides=" | ".join(_SIDES),
        runs="\n".join(_runs(found)),
        apart="\n".join(_apart(found)),
        shares="\n".join(_shares(found)),
        waits_fair="\n".join(_waits(found, FAIR)),
        waits_arrival="\n".join(_waits(found, ARRIVAL_ORDER)),
    )


def drawing(found: Found) -> str:
    """Every tenant's share in fair order, real and simulated."""
    received = [{each.tenant: 100 * each.received for each in found.of(FAIR, name).tenants} for name in _SIDES]
    return rows(
        About(NAME, "Shares in fair order, real and simulated", "The figures are in the table of the page."),
        Axis("% of the work", 0.0, 1.05 * max(max(side.values()) for side in received)),
        _SIDES,
        [(tenant, [side[tenant] for side in received]) for tenant in _heaviest(found)],
        left=46,
    )


def _make(given: Sequence[Given], walk: Walk) -> Made:
    (of,) = given
    found = truth.study(of.trace, walk)
    return Made(found, page(found), {DRAWING: drawing(found)})


LISTED: Final = Listed(NAME, "the simulator beside the real gateway", Traces.ONE, _make)


def _runs(found: Found) -> Iterable[str]:
    for order in truth.ORDERS:
        for name in _SIDES:
            side = found.of(order, name)
            yield (
                f"| {order}, {name} | {side.seconds:.1f} | {side.tokens_per_second:,.0f} | {side.wait_p50:.2f} "
                f"| {side.wait_p99:.2f} | {side.share_error:.1%} | {side.gap_over_bound:.2f} |"
            )


def _apart(found: Found) -> Iterable[str]:
    for order in truth.ORDERS:
        first, second, simulated = (found.of(order, name) for name in _SIDES)
        for what, one, other in (
            ("two real runs", first, second),
            ("simulated and the first", first, simulated),
            ("simulated and the second", second, simulated),
        ):
            far = apart(one, other)
            yield f"| {order}: {what} | {100 * far.share:.2f} | {far.wait:.2f} | {far.throughput:+.1%} |"


def _shares(found: Found) -> Iterable[str]:
    """Every tenant's share under both orders."""
    received = {
        (order, name): {each.tenant: each.received for each in found.of(order, name).tenants}
        for order in truth.ORDERS
        for name in _SIDES
    }
    for tenant in _heaviest(found):
        shares = (f"{received[order, name][tenant]:.1%}" for order in truth.ORDERS for name in _SIDES)
        yield f"| {tenant} | {' | '.join(shares)} |"


def _waits(found: Found, order: str) -> Iterable[str]:
    """Every tenant's waits under one order, median and 99th percentile."""
    sides = [{each.tenant: each for each in found.of(order, name).tenants} for name in _SIDES]
    for tenant in _heaviest(found):
        of_sides = [side[tenant] for side in sides]
        medians, tails = (f"{each.wait_p50:.2f}" for each in of_sides), (f"{each.wait_p99:.2f}" for each in of_sides)
        yield f"| {tenant} | {' | '.join(medians)} | {' | '.join(tails)} |"


def _heaviest(found: Found) -> list[str]:
    """The tenants, who had most requests first."""
    waits = found.sides[0].waits
    return sorted(waits, key=lambda tenant: (-len(waits[tenant]), tenant))


_WORDS: Final = """\
# Does the simulator tell the truth?

The lab's other pages rest on a simulated pool. Here the same trace goes through the real thing as well: the gateway as
a process, engines as processes that model a GPU by the same formula, the official client, HTTP between them, and time
as it passes. It is the pool of `fairpool demo`: {requests} requests of {tenants} tenants, the busiest four minutes of
the trace {compression} times as fast, on {engines} engines with {slots} slots each, under both orders.

```sh
fairpool lab study truth --trace vtc_real_trace.csv --out docs/studies
```

makes this page, in about three minutes, most of which is waiting.

The real pool never does the same again: which of two requests comes first is a matter of milliseconds. So it is run
twice, and what two real runs differ by is what no simulator can foretell.

| | seconds | tokens/s | wait p50, s | wait p99, s | share error | gap / bound |
|---|--:|--:|--:|--:|--:|--:|
{runs}

How far two runs are apart: the greatest difference of any tenant's share, in points; the median difference of a
request's wait; by how much the second did more in a second.

| | share | wait, s | throughput |
|---|--:|--:|--:|
{apart}

In shares and in waits the simulator is as close to a real run as another real run is, and in throughput within one part
in a hundred. Both agree on what an order does: which tenants wait, how long, and by how much shares and gaps are off.

## Shares

Of the work until the last arrival, tenants with most requests first; arrival order, then fair.

| | {sides} | {sides} |
|---|--:|--:|--:|--:|--:|--:|
{shares}

![Every tenant's share in fair order, real and simulated]({drawing})

## Waits

In fair order, in seconds: the medians, then the 99th percentiles.

| | {sides} | {sides} |
|---|--:|--:|--:|--:|--:|--:|
{waits_fair}

In arrival order:

| | {sides} | {sides} |
|---|--:|--:|--:|--:|--:|--:|
{waits_arrival}

## What this does not show

That the engines' model is true of a GPU: the engines are simulated on both sides, and
[where its numbers come from](../lab.md#what-is-simulated) is another question. Times to the first token, which a
gateway's log does not tell. Failures, retries, and clients that leave. Loads at which the gateway itself is the
bottleneck: here it handles some forty requests a second.
"""
