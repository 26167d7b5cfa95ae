"""Demand that is made to break the bound: the study of it has little worth if nobody tries.

Each scenario is a way by which a tenant could hope to get ahead, or a pool could let it. All are the same for every
policy and in every process.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from random import Random
from typing import Final

from fairpool_gateway.cost import Used
from fairpool_lab.simulation import (
    ESTIMATORS,
    Clients,
    Engine,
    FixedService,
    Replace,
    Reweigh,
    Scenario,
)

RATE: Final = 1000.0
"""Tokens of cost that a slot serves in a second."""

SECONDS: Final = 200.0
"""How long clients go on."""

TINY: Final = [(8, 1)]
HUGE: Final = [(60_000, 20_000)]


@dataclass(frozen=True, slots=True)
class Adversary:
    """One of them: what it is called, what is tried, and the scenario."""

    name: str
    attempt: str
    scenario: Scenario


def cost(used: Used) -> int:
    """What a request really costs, by the pool's defaults."""
    return used.input + 2 * used.output


def server() -> Engine:
    """The engine of all of them."""
    return FixedService(RATE, cost)


def drawn(number: int) -> Iterator[Scenario]:
    """So many that nobody thought of: sizes and weights of several magnitudes, clients that pause and leave."""
    for seed in range(number):
        chance = Random(f"adversary {seed}")  # noqa: S311 - to be repeatable
        names = [f"t{place}" for place in range(chance.randint(2, 6))]
        yield Scenario(
            server,
            clients=tuple(_drawn_clients(name, chance, 20.0) for name in names for _ in range(chance.randint(1, 2))),
            slots=chance.choice((1, 2, 3, 8)),
            weights={name: _magnitude(chance, 1000) for name in names},
            changes=tuple(
                Reweigh(chance.uniform(0, 20), chance.choice(names), _magnitude(chance, 1000))
                for _ in range(chance.randint(0, 8))
            ),
            estimator=chance.choice([each.make for each in ESTIMATORS.values()]),
            seed=seed,
        )


def _adversary(
    name: str,
    attempt: str,
    clients: tuple[Clients, ...],
    *,
    weights: dict[str, int] | None = None,
    changes: tuple[Reweigh | Replace, ...] = (),
    slots: int = 2,
) -> Adversary:
    oracle = ESTIMATORS["oracle"].make
    scenario = Scenario(
        server, clients=clients, slots=slots, weights=weights or {}, changes=changes, estimator=oracle, seed=1
    )
    return Adversary(name, attempt, scenario)


def _crowd() -> tuple[Clients, ...]:
    chance = Random("a crowd")  # noqa: S311 - to be repeatable
    return tuple(_drawn_clients(f"t{number}", chance, SECONDS) for number in range(60))


def _drawn_clients(tenant: str, chance: Random, seconds: float) -> Clients:
    begin = chance.uniform(0, seconds / 2)
    return Clients(
        tenant,
        chance.randint(1, 6),
        [(_magnitude(chance, 5_000), _magnitude(chance, 500)) for _ in range(3)],
        begin=begin,
        until=chance.uniform(begin, seconds),
        pause=chance.choice((0.01, 0.5, 5.0)),
        leaves_after=chance.choice((None, None, 1.0)),
    )


def _magnitude(chance: Random, most: int) -> int:
    """A number of any magnitude up to that one."""
    return max(1, round(math.exp(chance.uniform(0, math.log(most)))))


_HONEST: Final = Clients("honest", 8, [(90, 5)], until=SECONDS)
BY_HAND: Final = (
    _adversary(
        "huge beside tiny",
        "requests of 100,000 tokens at weight 1, beside requests of 10 at weight 1000",
        (Clients("huge", 4, HUGE, until=SECONDS), Clients("tiny", 64, TINY, until=SECONDS)),
        weights={"huge": 1, "tiny": 1000},
    ),
    _adversary(
        "tiny and huge",
        "sixty requests of 10 tokens to one of 10,000, in any order, from one tenant",
        (Clients("mixed", 12, [*TINY * 60, (6_000, 2_000)], until=SECONDS), _HONEST),
    ),
    _adversary(
        "comes back each time",
        "one large request at a time, so that the tenant is new whenever it comes",
        (Clients("returns", 1, [(998, 1)], until=SECONDS), _HONEST),
    ),
    _adversary(
        "cancels and asks again",
        "clients that leave after half a second, whether they wait or are served, and ask again",
        (Clients("cancels", 12, [(900, 50)], until=SECONDS, leaves_after=0.5), _HONEST),
    ),
    _adversary(
        "weights turned about",
        "weights of 1 and 1000 that change places each five seconds, while both wait",
        (Clients("one", 8, [(90, 5), (2_000, 500)], until=SECONDS), Clients("other", 8, [(90, 5)], until=SECONDS)),
        changes=tuple(
            Reweigh(5.0 * turn, tenant, weight)
            for turn in range(int(SECONDS / 5))
            for tenant, weight in zip(("one", "other"), (1, 1000) if turn % 2 else (1000, 1), strict=True)
        ),
    ),
    _adversary(
        "endpoints come and go",
        "one to three endpoints, another number every three seconds",
        (Clients("large", 8, [(4_000, 500)], until=SECONDS), _HONEST),
        changes=tuple(
            Replace(3.0 * turn, tuple(f"engine-{number}" for number in range(1 + turn * 7 % 3)))
            for turn in range(1, int(SECONDS / 3))
        ),
    ),
    _adversary(
        "sixty come and go", "sixty tenants with requests of any size that come, pause, leave and return", _crowd()
    ),
    _adversary(
        "many identities",
        "two hundred names that ask for little each, beside an honest tenant",
        (*(Clients(f"name-{number}", 1, [(90, 5)], until=30.0) for number in range(200)), _HONEST),
        slots=8,
    ),
)
"""Those that somebody thought of."""
