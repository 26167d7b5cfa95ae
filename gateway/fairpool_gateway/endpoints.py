"""The endpoints of a pool and their slots, so that what is in flight is counted once and given back once.

A slot is the right to have one request outstanding on an endpoint. It belongs to the endpoint *object* it was taken
from: an endpoint that leaves the pool and comes back under the same address, with another identity, starts empty,
and slots of the one that left are given back to it without harm. One that comes back with its identity still has what
it had in flight, for that runs on while it is away. What always holds: `in_flight` and `outstanding` are never
negative, and equal the number and the cost of the slots that are out. An endpoint that drains, is ejected or may not
serve the pool's models gets nothing new and finishes what it runs. Of those that neither drain nor want for models, one
at least is not ejected.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from fairpool_gateway.health import EJECTED, GOOD, ON_TRIAL, Health


@dataclass(frozen=True, slots=True)
class EndpointSpec:
    """One endpoint as the configuration or discovery names it.

    Attributes:
        id: its identity: pod UID and port, or the configuration's name and address. Another id, another endpoint.
        host: where it listens.
        port: where it listens.
        slots: how many requests it may have outstanding.
        draining: whether it is to finish what it runs and get no more.
        over_tls: whether it is reached over TLS.
        asked_first: whether it gets nothing before it was asked which models it serves.
    """

    id: str
    host: str
    port: int
    slots: int
    draining: bool = False
    over_tls: bool = False
    asked_first: bool = False


class Endpoint:
    """One inference server, with what the gateway itself has outstanding on it.

    Attributes:
        spec: what was last said of it.
        in_flight: slots that are taken.
        outstanding: the cost of what is in flight, in tokens.
        health: what has been seen of it.
        asked: whether it was asked for its models.
        models: what it serves by its own word; None while it has said nothing.
        wanting: why it may not serve this pool's models, if so.
    """

    __slots__ = ("asked", "health", "in_flight", "models", "outstanding", "spec", "wanting")

    def __init__(self, spec: EndpointSpec) -> None:
        self.spec = spec
        self.in_flight = 0
        self.outstanding = 0
        self.health = Health()
        self.asked = False
        self.models: frozenset[str] | None = None
        self.wanting: str | None = None

    @property
    def has_free_slot(self) -> bool:
        """Whether one more request may be sent here."""
        if self.in_flight >= self.spec.slots or self.spec.draining or self.wanting is not None:
            return False
        return self.health.standing is GOOD or (self.health.standing is ON_TRIAL and not self.health.trial_runs)

    @property
    def is_out(self) -> bool:
        """Whether it gets nothing new, however few requests it runs."""
        return self.spec.draining or self.wanting is not None or self.health.standing is EJECTED

    def take(self, cost: int) -> Slot:
        """Take one slot for a request of this cost."""
        self.in_flight += 1
        self.outstanding += cost
        on_trial = self.health.trial_runs = self.health.standing is ON_TRIAL
        return Slot(self, cost, on_trial=on_trial)


class Slot:
    """One taken slot."""

    __slots__ = ("_cost", "_held", "_on_trial", "endpoint")

    def __init__(self, endpoint: Endpoint, cost: int, *, on_trial: bool) -> None:
        self.endpoint = endpoint
        self._cost = cost
        self._held = True
        self._on_trial = on_trial

    def give_back(self) -> None:
        """Give the slot back to the endpoint it was taken from; only the first call counts."""
        if self._held:
            self._held = False
            self.endpoint.in_flight -= 1
            self.endpoint.outstanding -= self._cost
            if self._on_trial:
                self.endpoint.health.trial_runs = False


class Endpoints:
    """The endpoints that may be given work, by identity, in a stable order."""

    def __init__(self) -> None:
        self._by_id: dict[str, Endpoint] = {}
        self._away: dict[str, Endpoint] = {}

    def __iter__(self) -> Iterator[Endpoint]:
        return iter(self._by_id.values())

    def __len__(self) -> int:
        return len(self._by_id)

    def replace(self, specs: Iterable[EndpointSpec]) -> None:
        """Make these the endpoints: known identities keep their slots, others join or leave."""
        before = self._away | self._by_id
        self._by_id = {spec.id: _updated(before.get(spec.id), spec) for spec in specs}
        self._away = {name: each for name, each in before.items() if each.in_flight and name not in self._by_id}

    def rely_on_who_is_left(self) -> None:
        """If all that are left were ejected, each may prove itself at once."""
        if all(endpoint.is_out for endpoint in self):
            for endpoint in self:
                endpoint.health.is_needed()

    def others_than(self, endpoint: Endpoint) -> bool:
        """Whether another endpoint is there for the work of this one, should it be ejected."""
        return any(other is not endpoint and not other.is_out for other in self)

    def tick(self, now: float) -> None:
        """Time has passed: whoever has been out for long enough may prove itself."""
        for endpoint in self:
            endpoint.health.tick(now)

    def next_return(self) -> float | None:
        """When the next ejected endpoint may prove itself; None if none is ejected."""
        ejected = (endpoint.health for endpoint in self if endpoint.health.standing is EJECTED)
        return min((health.until for health in ejected), default=None)


def _updated(endpoint: Endpoint | None, spec: EndpointSpec) -> Endpoint:
    if endpoint is None:
        return Endpoint(spec)
    endpoint.spec = spec
    return endpoint
