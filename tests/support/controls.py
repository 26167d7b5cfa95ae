"""Schedulers that disobey one rule each, as policies: controls by which the lab's measures are measured.

They are those of `support.sfq_broken`; none is written twice. A measure that calls all of them fair says nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from support.sfq_oracle import Oracle

from fairpool_gateway.sfq import Decision, Meter
from fairpool_lab.policies import PolicyFactory, Sight
from fairpool_lab.policies.policy import Hearing


class Disobedient(Hearing[Any]):
    """One of them, told what policies are told. A request that ended without an answer has failed."""

    def __init__(self, scheduler: Oracle) -> None:
        self._scheduler = scheduler
        self._in_flight: dict[Any, Decision[Any]] = {}
        self._answered = set[Any]()
        self.identify = scheduler.identify
        self.weight = scheduler.weight
        self.arrive = scheduler.arrive
        self.remove = scheduler.remove
        self.reweigh = scheduler.reweigh
        self.reweigh_default = scheduler.reweigh_default

    @property
    def v(self) -> int:
        return self._scheduler.v

    @property
    def waiting(self) -> int:
        return self._scheduler.waiting

    def dispatch(self) -> Decision[Any] | None:
        decision: Decision[Any] | None = self._scheduler.dispatch()
        if decision is not None:
            self._in_flight[decision.request] = decision
        return decision

    def meters(self) -> Iterator[Meter]:
        return self._scheduler.meters()

    def progressed(self, request: Any, input_tokens: int, output_tokens: int) -> None:
        if output_tokens:
            self._answered.add(request)

    def finished(self, request: Any) -> None:
        self._scheduler.ended(self._in_flight.pop(request), failed=request not in self._answered)
        self._answered.discard(request)


def control(kind: type[Oracle]) -> PolicyFactory[Any]:
    """Makes policies of a kind of scheduler."""

    def make(
        price: Callable[[Any], int],
        *,
        weights: Mapping[str, int],
        default_weight: int,
        max_tenants: int,
        sight: Sight[Any] | None = None,
    ) -> Any:
        return Disobedient(kind(price, weights=weights, default_weight=default_weight))

    return make
