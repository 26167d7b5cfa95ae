"""Stride scheduling: turns by weight, each tenant's a fixed stride apart.

Source: Waldspurger, Weihl, "Stride Scheduling: Deterministic Proportional-Share Resource Management", MIT/LCS/TM-528,
1995, §2 and §2.2 (dynamic participation and ticket changes). A client's stride is `stride1 / tickets`; the least pass
goes next and moves on by its stride. A global pass moves by `stride1` over the tickets of all who compete. Who leaves
keeps how far its pass was from the global one, and comes back as far from it; a change of tickets scales that distance
as it scales the stride.

Here tickets are weights, and a turn is one request, whatever it costs: the fixed quantum of the source, as the article
reads it (§6.3). With the cost of each request as its stride this would be SFQ's meter (§6.1).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Final, TypeVar, Unpack

from fairpool_gateway.sfq import Decision
from fairpool_lab.policies.least import Least
from fairpool_lab.policies.policy import Unmoved
from fairpool_lab.policies.queues import Pool, TenantQueues

STRIDE1: Final = 1 << 32
"""The stride of a single ticket: large, so that strides are whole numbers without much rounding."""

R = TypeVar("R", bound=Hashable)


class _Client:
    """A tenant's tickets, its stride, and its pass: while it does not compete, `ahead` of the global one."""

    __slots__ = ("ahead", "stride", "tickets")

    def __init__(self, tickets: int, stride: int) -> None:
        self.tickets = tickets
        self.stride = stride
        self.ahead = stride


class Stride(Unmoved[R], TenantQueues[R]):
    """Passes and strides.

    Args:
        price: the cost of a request in tokens.
        stride1: the stride of a single ticket.
        pool: as for every policy.
    """

    def __init__(self, price: Callable[[R], int], *, stride1: int = STRIDE1, **pool: Unpack[Pool[R]]) -> None:
        super().__init__(price, **pool)
        self._stride1 = stride1
        self._clients: dict[str, _Client] = {}
        self._passes = Least()
        self._tickets = 0

    def choose(self) -> str:
        """The tenant with the least pass."""
        return self._passes.first()[1]

    def joined(self, tenant: str) -> None:
        """It comes back as far from the global pass as it left it; a new one is a stride ahead."""
        client = self._clients.get(tenant)
        if client is None:
            tickets = self.weight(tenant)
            client = self._clients[tenant] = _Client(tickets, self._stride1 // tickets)
        self._tickets += client.tickets
        self._passes.put(tenant, self.v + client.ahead)

    def took(self, decision: Decision[R]) -> None:
        """The pass moves on by a stride, the global pass by that of all tickets together."""
        self.v += self._stride1 // self._tickets
        self._passes.put(decision.tenant, decision.start_tag + self._clients[decision.tenant].stride)

    def left(self, tenant: str) -> None:
        """Remember how far it was from the global pass."""
        client = self._clients[tenant]
        client.ahead = self._passes.number(tenant) - self.v
        self._passes.discard(tenant)
        self._tickets -= client.tickets

    def meter(self, tenant: str) -> int:
        """The pass."""
        return self._passes.number(tenant)

    def reweigh(self, tenant: str, weight: int | None) -> None:
        """Change the tenant's tickets."""
        super().reweigh(tenant, weight)
        self._change(tenant)

    def reweigh_default(self, weight: int) -> None:
        """Change the tickets of everybody else."""
        super().reweigh_default(weight)
        for tenant in self._clients:
            self._change(tenant)

    def _change(self, tenant: str) -> None:
        client, tickets = self._clients.get(tenant), self.weight(tenant)
        if client is None or client.tickets == tickets:
            return
        competes = tenant in self._passes
        if competes:
            self.left(tenant)
        stride = self._stride1 // tickets
        client.ahead = client.ahead * stride // client.stride
        client.tickets, client.stride = tickets, stride
        if competes:
            self.joined(tenant)
