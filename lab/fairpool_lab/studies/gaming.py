"""What a tenant gains by tricks: the same pool with and without each, and what the one that plays it gets of the work.

Four tenants of equal weight ask in closed loops for more than an A10G gives, so that each has a claim to a quarter;
one of them plays the trick. Work is counted as the engine does it, token by token, whether or not the answer was taken
to its end. Where a trick needs another stage, the stage is part of it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from fairpool_gateway.cost import CostModel
from fairpool_lab.simulation import Clients, ContinuousBatching, Run, Scenario, simulate
from fairpool_lab.simulation.gpus import GPUS
from fairpool_lab.studies.foretelling import Way

LASTS: Final = 240.0
COUNTS_FROM: Final = 80.0
"""Seconds, and from when on they count: by then estimators have learned what they will."""

SLOTS: Final = 8
HONEST: Final = tuple(Clients(f"honest-{number}", SLOTS, [(100, 100)], until=LASTS, max_tokens=128) for number in "123")
CHEAT: Final = "cheat"
"""Whoever plays a trick. Comes before the others where names break ties, for that is what a trick may live on."""

_AS_OTHERS: Final = replace(HONEST[0], tenant=CHEAT)

PERIOD: Final = 20.0
"""Of tricks that go by turns, in seconds: one half so, the other half otherwise."""


@dataclass(frozen=True, slots=True)
class Trick:
    """One trick.

    Attributes:
        name: what the page calls it.
        played: the clients of the one that plays it, under whatever names.
        others: the clients of the others.
        slots: how many the pool has.
        halves: whether it asks only in the first half of each period, and only these count.
    """

    name: str
    played: tuple[Clients, ...]
    others: tuple[Clients, ...] = HONEST
    slots: int = SLOTS
    halves: bool = False

    @property
    def claim(self) -> float:
        """Its share."""
        return 1 / (1 + len(self.others))


def _by_turns(first: Clients, second: Clients | None = None) -> tuple[Clients, ...]:
    """The one in the first half of each period, the other in the second, or nobody."""
    turns = []
    for period in range(int(LASTS / PERIOD)):
        begin, middle, end = (period * PERIOD + part for part in (0.0, PERIOD / 2, PERIOD))
        turns.append(replace(first, begin=begin, until=middle))
        if second is not None:
            turns.append(replace(second, begin=middle, until=end))
    return tuple(turns)


_TWO_CLIENTS: Final = (Clients("honest", 2, [(10, 5)], until=LASTS, pause=0.05, max_tokens=8),)
_ALONE: Final = Clients(CHEAT, 1, [(100, 100)], until=LASTS, pause=0.001, max_tokens=128)
"""Its requests are large and come one by one; while it waits the only other may for a moment have none that waits."""

TRICKS: Final = (
    Trick("none", (_AS_OTHERS,)),
    Trick("a million", (replace(_AS_OTHERS, max_tokens=1_000_000),)),
    Trick("split", (replace(_AS_OTHERS, count=10 * SLOTS, sizes=[(10, 10)], max_tokens=16),)),
    Trick("padded", (replace(_AS_OTHERS, sizes=[(800, 100)]),)),
    Trick("mixed", (replace(_AS_OTHERS, sizes=[(100, 4), (100, 400)], max_tokens=512),)),
    Trick(
        "mixed by turns",
        _by_turns(replace(_AS_OTHERS, sizes=[(100, 4)]), replace(_AS_OTHERS, sizes=[(100, 400)], max_tokens=512)),
    ),
    Trick("cancelled", (replace(_AS_OTHERS, sizes=[(100, 400)], max_tokens=512, enough=390),)),
    Trick(
        "mixed, the long cancelled",
        (
            replace(_AS_OTHERS, count=1, sizes=[(100, 4)], max_tokens=16),
            replace(_AS_OTHERS, count=SLOTS - 1, sizes=[(100, 400)], max_tokens=512, enough=390),
        ),
    ),
    Trick("1,000 identities", tuple(replace(_AS_OTHERS, tenant=f"t{number}", count=1) for number in range(1000))),
    Trick("leave and return", _by_turns(_AS_OTHERS), halves=True),
    Trick("one at a time", (_ALONE,), _TWO_CLIENTS, slots=1),
    Trick("cancel and resubmit", (replace(_ALONE, patience=0.02),), _TWO_CLIENTS, slots=1),
)


def gain(trick: Trick, way: Way, *, lasts: float = LASTS, max_tenants: int | None = None) -> float:
    """What the trick brings, as a part of the share that its player has a claim to; 0 for nothing, -1 for all of it.

    Args:
        trick: what is played.
        way: the order, and what estimates costs for it.
        lasts: how many seconds are played.
        max_tenants: how many names without a weight of their own are told apart; None for all.
    """
    clients = tuple(replace(each, until=min(each.until, lasts)) for each in (*trick.others, *trick.played))
    scenario = Scenario(
        partial(ContinuousBatching, GPUS["a10g"].limits),
        clients=clients,
        slots=trick.slots,
        weights={each.tenant: 100 for each in trick.others},
        estimator=way.estimator,
        cost=CostModel(carry=way.carry),
    )
    if max_tenants is not None:
        scenario = replace(scenario, max_tenants=max_tenants)
    run = simulate(scenario, way.order)
    return _part(run, trick, min(COUNTS_FROM, lasts / 2), lasts) / trick.claim - 1


def _part(run: Run, trick: Trick, since: float, until: float) -> float:
    """The part of the work in that time that was done for whoever is none of the others."""
    others = {each.tenant for each in trick.others}
    own = whole = 0
    for done in run.service:
        if since <= done.at < until and not (trick.halves and done.at % PERIOD >= PERIOD / 2):
            tokens = done.input + done.cached + 2 * done.output
            whole += tokens
            own += tokens * (done.tenant not in others)
    return own / whole if whole else 0.0
