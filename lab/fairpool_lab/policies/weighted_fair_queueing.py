"""Weighted fair queueing: the request that a fluid server would finish first goes first.

Source: Demers, Keshav, Shenker, "Analysis and Simulation of a Fair Queueing Algorithm", SIGCOMM 1989, §2.2, with
weights as in Parekh, Gallager, "A Generalized Processor Sharing Approach to Flow Control", IEEE/ACM Transactions on
Networking 1(3), 1993, §III, where it is called PGPS. A request that arrives gets the finish tag `F = max(F of the one
before it, V) + c/w`, where `V` is the virtual time of a fluid GPS with the same arrivals; the least tag goes next.
No tenant is ever further behind the fluid server than the greatest request. Unlike SFQ it needs the cost before the
choice (§5.1), and the fluid server's clock (§6.1).

Chosen here: the sources have a link of known rate, which drives `V`; a pool has none, so `V` is driven by what was
dispatched, as in `measures.fluid`. The cost in a tag is what is estimated at arrival. Tags that were given stay, when
a weight changes or a request before them is withdrawn; the tags to come take it into account.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import TypeVar, Unpack

from fairpool_gateway.sfq import Decision
from fairpool_lab.measures.fluid import Fluid
from fairpool_lab.policies.least import Least
from fairpool_lab.policies.policy import Unmoved
from fairpool_lab.policies.queues import Pool, TenantQueues

R = TypeVar("R", bound=Hashable)


class WeightedFairQueueing(Unmoved[R], TenantQueues[R]):
    """Finish tags, in the unit of the fluid reference, and that reference as the clock."""

    def __init__(self, price: Callable[[R], int], **pool: Unpack[Pool[R]]) -> None:
        super().__init__(price, **pool)
        self._fluid = Fluid()
        self._tags: dict[R, tuple[int, int]] = {}
        self._heads = Least()

    def arrive(self, tenant: str, request: R) -> str:
        """Tag the request."""
        cost = self.price(request)
        self._tags[request] = (self._fluid.arrive(tenant, cost, self.weight(tenant)), cost)
        return super().arrive(tenant, request)

    def remove(self, tenant: str, request: R) -> None:
        """The fluid server need not serve it either."""
        super().remove(tenant, request)
        _, cost = self._tags.pop(request)
        self._fluid.remove(tenant, cost)
        if tenant in self.queues:
            self.joined(tenant)

    def choose(self) -> str:
        """The tenant whose head has the least finish tag."""
        return self._heads.first()[1]

    def joined(self, tenant: str) -> None:
        """Its head competes."""
        self._heads.put(tenant, self._tags[self.head(tenant)][0])

    def took(self, decision: Decision[R]) -> None:
        """The fluid server has as much to give."""
        _, cost = self._tags.pop(decision.request)
        self._fluid.serve(cost)
        if decision.tenant in self.queues:
            self.joined(decision.tenant)

    def left(self, tenant: str) -> None:
        """It competes no more."""
        self._heads.discard(tenant)
