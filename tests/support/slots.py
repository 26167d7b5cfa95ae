"""A pool of slots over a scheduler: places while a slot is free, and ends requests in any order.

The smallest thing that has several requests in flight, for what only shows with several slots. The product's own
is the dispatcher.
"""

from __future__ import annotations

from collections.abc import Iterable

from support.sfq_events import Arrive, Ask, End, Event, Remove, Request, Reweigh, ReweighDefault
from support.sfq_history import History, Moment, Ordering

from fairpool_gateway.sfq import Decision


class SlottedPool:
    """Slots over one scheduler. After every event the free ones ask, one at a time, until nobody waits."""

    def __init__(self, scheduler: Ordering, slots: int) -> None:
        self.history = History(scheduler)
        self.slots = slots
        self.in_flight: list[Decision[Request]] = []

    @property
    def free(self) -> int:
        return self.slots - len(self.in_flight)

    def arrive(self, tenant: str, cost: int = 1) -> Request:
        request = self.history.arrive(tenant, cost)
        self.place()
        return request

    def remove(self, request: Request) -> None:
        self.history.remove(request)
        self.place()

    def end(self, decision: Decision[Request], *, failed: bool = False) -> None:
        self.in_flight.remove(decision)
        self.history.ended(decision, failed=failed)
        self.place()

    def place(self) -> None:
        while self.free:
            decision = self.history.dispatch()
            if decision is None:
                return
            self.in_flight.append(decision)

    def play(self, events: Iterable[Event]) -> list[Moment]:
        for event in events:
            self._play(event)
            self.check_work_conserved()
        return self.history.moments

    def check_work_conserved(self) -> None:
        """After every event either nobody waits or no slot is free."""
        waiting = len(self.history.queued)
        assert not (waiting and self.free), f"{waiting} wait beside {self.free} free slots"

    def _play(self, event: Event) -> None:
        match event:
            case Arrive(tenant, cost):
                self.arrive(tenant, cost)
            case Remove(place):
                if self.history.queued:
                    self.remove(self.history.queued[place % len(self.history.queued)][1])
            case End(place, failed):
                if self.in_flight:
                    self.end(self.in_flight[place % len(self.in_flight)], failed=failed)
            case Reweigh(tenant, weight):
                self.history.reweigh(tenant, weight)
            case ReweighDefault(weight):
                self.history.reweigh_default(weight)
            case Ask():
                self.place()
