"""A witness that stands beside a scheduler, passes events on, and notes what holds after each of them.

It keeps its own books of who waits and what was charged. From the scheduler it takes only decisions, virtual time,
weights and the meters it shows. The checks of `support.sfq_checks` read nothing but these notes, so the same check
judges the product, the oracle and every broken variant.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol

from support.sfq_events import Arrive, Ask, End, Event, Remove, Request, Reweigh, ReweighDefault

from fairpool_gateway.sfq import Decision, Meter, charge


class Ordering(Protocol):
    """What the product and the oracle have in common."""

    v: int

    def arrive(self, tenant: str, request: Request, /) -> str: ...
    def remove(self, tenant: str, request: Request, /) -> None: ...
    def dispatch(self) -> Decision[Request] | None: ...
    def reweigh(self, tenant: str, weight: int | None, /) -> None: ...
    def reweigh_default(self, weight: int, /) -> None: ...
    def weight(self, tenant: str, /) -> int: ...
    def meters(self) -> Iterator[Meter]: ...


@dataclass(frozen=True, slots=True)
class Moment:
    """The state after one event.

    Attributes:
        event: its kind: arrive, remove, dispatch, reset, reweigh or end.
        tenant: whom it concerned.
        decision: what was dispatched, if anything.
        due: what that decision had to charge, by the weight in force.
        v: virtual time.
        meters: the meters that the scheduler remembers.
        backlogged: who has requests waiting.
        charged: the sum of charges of each tenant since the beginning, `N_i`.
        last: the last charge of each tenant, `l_i`.
    """

    event: str
    tenant: str | None
    decision: Decision[Request] | None
    due: int | None
    v: int
    meters: Mapping[str, int]
    backlogged: frozenset[str]
    charged: Mapping[str, int]
    last: Mapping[str, int]


class History:
    """Passes events on to a scheduler and notes a moment for each."""

    def __init__(self, scheduler: Ordering) -> None:
        self.scheduler = scheduler
        self.queued: list[tuple[str, Request]] = []
        self.charged: dict[str, int] = {}
        self.last: dict[str, int] = {}
        self.moments: list[Moment] = []
        self.numbers = 0
        self._note("begin")

    def arrive(self, tenant: str, cost: int = 1) -> Request:
        self.numbers += 1
        request = Request(self.numbers, cost)
        name = self.scheduler.arrive(tenant, request)
        self.queued.append((name, request))
        self._note("arrive", name)
        return request

    def remove(self, request: Request) -> None:
        tenant = next(name for name, waits in self.queued if waits == request)
        self.scheduler.remove(tenant, request)
        self.queued.remove((tenant, request))
        self._note("remove", tenant)

    def dispatch(self) -> Decision[Request] | None:
        decision = self.scheduler.dispatch()
        if decision is None:
            self._note("reset")
            return None
        tenant = decision.tenant
        self.queued.remove((tenant, decision.request))
        self.charged[tenant] = self.charged.get(tenant, 0) + decision.charge
        self.last[tenant] = decision.charge
        self._note("dispatch", tenant, decision, charge(decision.cost, self.scheduler.weight(tenant)))
        return decision

    def reweigh(self, tenant: str, weight: int | None) -> None:
        self.scheduler.reweigh(tenant, weight)
        self._note("reweigh", tenant)

    def reweigh_default(self, weight: int) -> None:
        self.scheduler.reweigh_default(weight)
        self._note("reweigh")

    def ended(self, decision: Decision[Request], *, failed: bool = False) -> None:
        """A request in flight ended. The product has no ear for that; only variants that should not have one do."""
        ended = getattr(self.scheduler, "ended", None)
        if ended is not None:
            ended(decision, failed=failed)
        self._note("end", decision.tenant)

    def play(self, events: Iterable[Event]) -> list[Moment]:
        """Play events of which the caller asks for free slots; returns the moments so far."""
        for event in events:
            match event:
                case Arrive(tenant, cost):
                    self.arrive(tenant, cost)
                case Remove(place):
                    if self.queued:
                        self.remove(self.queued[place % len(self.queued)][1])
                case Ask():
                    self.dispatch()
                case Reweigh(tenant, weight):
                    self.reweigh(tenant, weight)
                case ReweighDefault(weight):
                    self.reweigh_default(weight)
                case End():
                    raise AssertionError("without slots nothing is in flight")
        return self.moments

    @property
    def decisions(self) -> list[Decision[Request]]:
        return [moment.decision for moment in self.moments if moment.decision is not None]

    def _note(
        self,
        event: str,
        tenant: str | None = None,
        decision: Decision[Request] | None = None,
        due: int | None = None,
    ) -> None:
        self.moments.append(
            Moment(
                event,
                tenant,
                decision,
                due,
                self.scheduler.v,
                {meter.tenant: meter.meter for meter in self.scheduler.meters()},
                frozenset(name for name, _ in self.queued),
                dict(self.charged),
                dict(self.last),
            )
        )
