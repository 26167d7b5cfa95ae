"""Calibration: how well can costs be foretold, what does it do to shares, and what does a tenant gain by tricks?

Every way to foretell is run on every trace at several numbers of slots, learning as in service; then every trick is
played against every way and every order (`gaming`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from random import Random
from typing import Final

import msgspec

from fairpool_gateway.cost import CostModel
from fairpool_lab.comparison import estimating
from fairpool_lab.comparison.estimating import Foretold
from fairpool_lab.policies import POLICIES
from fairpool_lab.simulation import FixedService, Scenario, of_trace, simulate
from fairpool_lab.studies import gaming
from fairpool_lab.studies.foretelling import WAYS, Way
from fairpool_lab.studies.gaming import TRICKS, Trick
from fairpool_lab.studies.study import Given, Walk, owned, quietly
from fairpool_lab.traces import Trace

FIRST: Final = 3_000
"""Requests of each trace that are played."""

SLOTS: Final = (1, 8, 64)
OVERLOAD: Final = 1.5
"""How many times as much is asked for as the server gives."""

GREATEST_LIMIT: Final = 8192
_LOOSE: Final = 8

STRANGERS: Final = (1, 10, 100)
"""Bounds on the names without a weight of their own that are told apart."""


class Foretelling(msgspec.Struct, frozen=True):
    """How one way did on one trace at so many slots."""

    trace: str
    slots: int
    how: Foretold


class Gain(msgspec.Struct, frozen=True):
    """What one trick brings under one order, by one way to foretell costs, as a part of the share."""

    order: str
    way: str
    trick: str
    gain: float


class Found(msgspec.Struct, frozen=True):
    """All figures.

    Attributes:
        requests: of all traces together.
        foretold: how every way did.
        gains: what tricks bring.
        strangers: what a thousand identities bring, by how many strangers are told apart.
    """

    requests: int
    foretold: tuple[Foretelling, ...]
    gains: tuple[Gain, ...]
    strangers: dict[int, float]


def limited(trace: Trace) -> Trace:
    """The trace with limits of three habits, in turn by the tenants' names.

    The first sets `max_tokens` to the least power of two that the answer fits, the second to eight times that, the
    third to 8,192 whatever it asks; what the trace tells stands.
    """
    habits = {tenant: number % 3 for number, tenant in enumerate(sorted({request.tenant for request in trace}))}

    def limit(tokens: int, habit: int) -> int:
        fits = 1 << max(0, tokens - 1).bit_length()
        return (fits, _LOOSE * fits, max(fits, GREATEST_LIMIT))[habit]

    return tuple(
        replace(request, max_tokens=limit(request.output_tokens, habits[request.tenant]))
        if request.max_tokens is None
        else request
        for request in trace
    )


def foretold(trace: Trace, slots: int, way: Way) -> Foretold:
    """How a way does on a trace, on a server that gives less than is asked for, whatever its slots."""
    asked = sum(request.tokens for request in trace) / (trace[-1].arrival - trace[0].arrival)
    cost = CostModel(carry=way.carry)
    scenario = Scenario(
        partial(FixedService, asked / OVERLOAD / slots, lambda used: used.input + 2 * used.output),
        tuple(of_trace(trace, Random(0))),  # noqa: S311 - to be repeatable
        slots=slots,
        estimator=way.estimator,
        cost=cost,
    )
    return estimating.of_run(way.name, simulate(scenario, way.order), cost)


def study(
    given: Sequence[Given],
    walk: Walk = quietly,
    *,
    slots: Sequence[int] = SLOTS,
    tricks: Sequence[Trick] = TRICKS,
    lasts: float = gaming.LASTS,
) -> Found:
    """Measure."""
    cut = [Given(each.name, limited(owned(each.trace)[:FIRST])) for each in given]
    parts = tuple(product(cut, slots, WAYS))
    of_ways = walk(parts, lambda part: f"{part[0].name}, {part[1]} slots, {part[2].name}")
    told = tuple(Foretelling(each.name, number, foretold(each.trace, number, way)) for each, number, way in of_ways)
    plays = tuple(product(_played(), tricks))
    of_plays = walk(plays, lambda play: f"{play[1].name}, {play[0][0]}, {play[0][1].name}")
    gains = tuple(
        Gain(order, way.name, trick.name, gaming.gain(trick, way, lasts=lasts)) for (order, way), trick in of_plays
    )
    return Found(sum(len(each.trace) for each in cut), told, gains, _strangers(tricks, lasts))


def _played() -> tuple[tuple[str, Way], ...]:
    """Every way in fair order, then every other order by the gateway's default."""
    default = WAYS[0]
    others = ((name, default._replace(order=listed.factory)) for name, listed in POLICIES.items() if name != "sfq")
    return (*(("sfq", way) for way in WAYS), *others)


def _strangers(tricks: Sequence[Trick], lasts: float) -> dict[int, float]:
    """What a thousand identities bring where not all of them are told apart."""
    of_many = [trick for trick in tricks if len({clients.tenant for clients in trick.played}) > 1]
    return {
        bound: gaming.gain(trick, WAYS[0], lasts=lasts, max_tenants=bound) for trick in of_many for bound in STRANGERS
    }
