"""Deficit round robin: each turn grants a quantum of cost, and a request goes once its tenant has saved up for it.

Source: Shreedhar, Varghese, "Efficient Fair Queuing Using Deficit Round-Robin", IEEE/ACM Transactions on Networking
4(3), 1996 (SIGCOMM 1995), section "Deficit Round Robin". Active tenants stand in a ring. A visit adds the quantum `Q_i`
to the deficit counter, and serves heads while the counter covers them; what is left stays for the next visit, but of a
tenant whose queue is empty nothing stays. Who becomes backlogged joins the ring at its end. It pays in advance where
SFQ pays afterwards (§4.1), and its grain is the quantum besides the greatest request (§3.5).

Chosen here: `Q_i` is proportional to the weight (§4.4), `quantum` tokens for the least weight that there was at the
start. Visits in which nobody can be served are counted, not made, so a quantum far below the costs is as quick as any
other; the decisions are the same. The cost of a head is what it is estimated at when it is visited.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import TypeVar, Unpack

from fairpool_gateway.sfq import Decision
from fairpool_lab.policies.policy import Unmoved
from fairpool_lab.policies.queues import Pool, TenantQueues

R = TypeVar("R", bound=Hashable)


class DeficitRoundRobin(Unmoved[R], TenantQueues[R]):
    """A ring of tenants, the one that is visited in front.

    Args:
        price: the cost of a request in tokens.
        quantum: the tokens that a visit grants a tenant of the least weight.
        pool: as for every policy.
    """

    def __init__(self, price: Callable[[R], int], *, quantum: int = 1024, **pool: Unpack[Pool[R]]) -> None:
        super().__init__(price, **pool)
        self._quantum = quantum
        # Counters are in 1/parts token, so that every tenant's quantum is a whole number.
        self._parts = self.least_weight
        self._deficits: dict[str, int] = {}
        self._visited: str | None = None

    def choose(self) -> str:
        """The first tenant from the visited one on whose counter covers its head."""
        while (tenant := self._round()) is None:
            visits = min(-(-self._lacking(name) // self._grant(name)) for name in self.queues)
            for name in self.queues:
                self._deficits[name] += (visits - 1) * self._grant(name)
        return tenant

    def joined(self, tenant: str) -> None:
        """At the end of the ring, with nothing saved."""
        self._deficits[tenant] = 0

    def took(self, decision: Decision[R]) -> None:
        """The counter pays."""
        self._deficits[decision.tenant] -= decision.cost * self._parts

    def left(self, tenant: str) -> None:
        """What it has not used is forfeited."""
        del self._deficits[tenant]
        if self._visited == tenant:
            self._visited = None

    def _round(self) -> str | None:
        """Visit everybody once, from the visited one on; stop where a head can be served."""
        for _ in range(len(self.queues)):
            tenant = next(iter(self.queues))
            if self._visited is None:
                self._visited = tenant
                self._deficits[tenant] += self._grant(tenant)
            if self._lacking(tenant) <= 0:
                return tenant
            self._visited = None
            self.queues.move_to_end(tenant)
        return None

    def _grant(self, tenant: str) -> int:
        return self._quantum * self.weight(tenant)

    def _lacking(self, tenant: str) -> int:
        return self.price(self.head(tenant)) * self._parts - self._deficits[tenant]
