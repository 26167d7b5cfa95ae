"""Events for a scheduler: as values, so that one sequence can be played to several, and drawn at random.

`events()` draws sequences for hypothesis, which shrinks them; `long_run()` draws long ones from a seed, where the
interesting states lie deep: bursts, drains, and tenants who leave and come back as soon as they can.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from hypothesis import strategies as st

TENANTS = ("a", "b", "c", "d", "e", "f")
WEIGHTS = (1, 2, 3, 7, 100, 333, 1000)
HUGE = 10**12


class Request(NamedTuple):
    """A request as the scheduler sees it: something distinct that has a price."""

    number: int
    cost: int


def price(request: Request) -> int:
    return request.cost


class Arrive(NamedTuple):
    tenant: str
    cost: int


class Remove(NamedTuple):
    """Take out one of the requests that wait: the one at this place in order of arrival, modulo their number."""

    place: int


class Ask(NamedTuple):
    """A slot is free and asks for the next request."""


class Reweigh(NamedTuple):
    tenant: str
    weight: int | None


class ReweighDefault(NamedTuple):
    weight: int


class End(NamedTuple):
    """One of the requests in flight ends; only a pool with slots knows which are."""

    place: int
    failed: bool


Event = Arrive | Remove | Ask | Reweigh | ReweighDefault | End


def costs() -> st.SearchStrategy[int]:
    """Mostly small, so that tags tie; sometimes beyond anything a model can answer."""
    return st.one_of(st.integers(1, 4), st.sampled_from((10, 40, 1000)), st.integers(1, HUGE))


def events(
    tenants: Sequence[str] = TENANTS, *, slotted: bool = False, reweigh: bool = True, most: int = 80
) -> st.SearchStrategy[list[Event]]:
    """Sequences of events, arrivals the commonest; with `slotted`, requests end and slots ask by themselves."""
    arrive = st.builds(Arrive, st.sampled_from(tenants), costs())
    going: st.SearchStrategy[Event] = st.builds(End, st.integers(0, 7), st.booleans()) if slotted else st.just(Ask())
    remove = st.builds(Remove, st.integers(0, 9))
    weight = st.sampled_from(WEIGHTS)
    changes = st.builds(Reweigh, st.sampled_from(tenants), st.none() | weight) | st.builds(ReweighDefault, weight)
    likely = [arrive] * 8 + [going] * 7 + [remove] * 2 + [changes] * reweigh
    event = st.integers(0, len(likely) - 1).flatmap(likely.__getitem__)
    return st.lists(event, min_size=most // 4, max_size=most)


def long_run(seed: int, length: int, tenants: Sequence[str] = TENANTS, *, slotted: bool = False) -> Iterator[Event]:
    """Phases of a few dozen events, each with its own inclination, so that queues fill and drain many times."""
    chance = random.Random(seed)
    while length > 0:
        present = chance.sample(tenants, chance.randint(1, len(tenants)))
        costs = chance.choice(((1,), (1, 2, 3), (1, 10), (7, 4000), (1, HUGE)))
        likely = (chance.randint(1, 10), chance.randint(1, 10), chance.choice((0, 0, 1, 6)), chance.choice((0, 0, 1)))
        for kind in chance.choices(("arrive", "go", "remove", "reweigh"), likely, k=min(length, chance.randint(5, 60))):
            length -= 1
            match kind:
                case "arrive":
                    yield Arrive(chance.choice(present), chance.choice(costs))
                case "go":
                    yield End(chance.randrange(8), chance.random() < 0.3) if slotted else Ask()
                case "remove":
                    yield Remove(chance.randrange(1000))
                case _ if chance.random() < 0.2:
                    yield ReweighDefault(chance.choice(WEIGHTS))
                case _:
                    yield Reweigh(chance.choice(tenants), chance.choice((None, *WEIGHTS)))
