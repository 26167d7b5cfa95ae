"""What requests are charged for: their estimates, and with carry what earlier estimates of their tenant were off by.

Whoever orders requests asks for a price as often as it likes; only what was charged at a dispatch, and what became of
it, is written down. Every edit of the configuration leaves what was learned and what is owed as they are, but that a
tenant which is listed no longer owes nothing more, and nobody does in a pool that stops carrying.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from fairpool_gateway.config import PoolConfig
from fairpool_gateway.cost import Carry, Estimator, Used
from fairpool_gateway.request import Request
from fairpool_gateway.tallies import Tallies


class Charging:
    """Estimator and debts of one pool; `carry` is None where it does not carry."""

    def __init__(self, config: PoolConfig, estimator: Estimator) -> None:
        self.estimator = estimator
        self.carry = Carry() if config.cost.carry else None

    def configure(self, old: PoolConfig, new: PoolConfig) -> None:
        """Charge by another configuration from now on."""
        self.estimator.configure(new.cost.model())
        if not new.cost.carry:
            self.carry = None
        elif self.carry is None:
            self.carry = Carry()
        else:
            for tenant in old.weights().keys() - new.weights().keys():
                self.carry.forget(tenant)

    def price(self, request: Request) -> int:
        """What the request would be charged for if it went now."""
        request.estimate = estimate = self.estimator.estimate(request.tenant, request.shape)
        return estimate if self.carry is None else self.carry.price(request.tenant, estimate)

    def begin_anew(self) -> bool:
        """A free slot found nobody backlogged: nobody owes anything (§2.5). Whether that stays so till one arrives."""
        if self.carry is None:
            return True
        self.carry.begin_anew()
        return False

    def charged(self, request: Request, cost: int) -> None:
        """The request is dispatched, at this price."""
        request.cost = cost
        if self.carry is not None:
            self.carry.dispatched(request.tenant, request.estimate, cost)

    def ended(self, request: Request, used: Used | None, seen: Used | None) -> None:
        """The request was complete and `used` so much, or not and was `seen` to use so much; None if unknown."""
        if used is not None:
            cost = self.estimator.cost_of(used)
            request.used = used
            request.tally.used(request.estimate, cost, used)
            self.estimator.learn(request.tenant, request.shape, used)
            if self.carry is not None:
                self.carry.completed(request.tenant, request.estimate, cost)
        elif seen is not None and self.carry is not None:
            self.carry.cut_short(request.tenant, request.estimate, self.estimator.cost_of(seen))

    def debts(self, tallies: Tallies[Any]) -> Counter[str] | None:
        """What is owed under each name that has a tally; below 0 is credit. None where nothing is carried."""
        if self.carry is None:
            return None
        debts = Counter({tally.tenant: 0 for tally in tallies if tally.tenant})
        for tenant, debt in self.carry.debts():
            debts[tallies.of(tenant).tenant] += debt
        return debts
