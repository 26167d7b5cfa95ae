"""The fluid reference: what each tenant is entitled to, if service could be split as finely as one likes.

Fluid GPS serves every backlogged tenant in proportion to its weight at every instant, and what one does not need
goes to the others. Given the arrivals, weights and total service of a real run, it says what each tenant should have
received. A real run differs because requests are indivisible, and by its order.

The clock `V` is the service given to one unit of weight so far. A tenant's demand lasts until its finish tag `F`: an
arrival of cost c makes it `max(F, V) + c/w`, a removal `max(V, F - c/w)`, a new weight `V + (F - V) * w_old/w_new`.
Service of c moves `V` by c over the weights of the tenants with `F > V`, stopping at each finish. Entitled is what
arrived, minus `w * max(0, F - V)`. An event costs amortised O(log T) in T tenants.

Tags are integers in `1/RESOLUTION` token per weight and divisions round down, so after n events no figure is off by
more than n times the sum of the weights in that unit: below 10^-13 token after a billion events at a million.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from typing import Final

RESOLUTION: Final = 1 << 96

_SPARE_ENTRIES = 16
"""Entries that may be out of date before the heap is rebuilt, besides as many as are valid."""


class _Tenant:
    """One tenant: its weight, its finish tag, and what arrived for it, in 1/RESOLUTION token."""

    __slots__ = ("arrived", "finish", "weight")

    def __init__(self, weight: int) -> None:
        self.weight = weight
        self.finish = 0
        self.arrived = 0


class Fluid:
    """A fluid server. Service beyond all demand is given to nobody and saved up for nobody."""

    def __init__(self) -> None:
        self._v = 0
        self._tenants: dict[str, _Tenant] = {}
        self._backlogged: dict[str, _Tenant] = {}
        self._weights = 0
        self._finishes: list[tuple[int, str]] = []

    def arrive(self, tenant: str, cost: int, weight: int) -> int:
        """A request of this cost arrives for a tenant of this weight; returns the finish tag that it gets."""
        known = self._tenants.get(tenant) or self._tenants.setdefault(tenant, _Tenant(weight))
        self.reweigh(tenant, weight)
        if tenant not in self._backlogged:
            known.finish = self._v
            self._backlogged[tenant] = known
            self._weights += weight
        known.arrived += cost * RESOLUTION
        self._finish(tenant, known.finish + cost * RESOLUTION // weight)
        return known.finish

    def remove(self, tenant: str, cost: int) -> None:
        """A request that arrived at this cost is withdrawn: what the fluid has not served of it was never asked for."""
        if known := self._backlogged.get(tenant):
            withdrawn = min(cost * RESOLUTION // known.weight, known.finish - self._v)
            known.arrived -= withdrawn * known.weight
            self._finish(tenant, known.finish - withdrawn)

    def reweigh(self, tenant: str, weight: int) -> None:
        """A tenant's weight changes: what it still demands stays the same, and takes another time."""
        known = self._tenants.get(tenant)
        if known is None or known.weight == weight:
            return
        if tenant in self._backlogged:
            self._weights += weight - known.weight
            self._finish(tenant, self._v + (known.finish - self._v) * known.weight // weight)
        known.weight = weight

    def serve(self, cost: int) -> None:
        """Service of this cost is given, to whoever is entitled to it."""
        left = cost * RESOLUTION
        while self._backlogged:
            tenant, finish = self._first_to_finish()
            needed = (finish - self._v) * self._weights
            if needed > left:
                self._v += left // self._weights
                return
            left -= needed
            self._v = finish
            self._weights -= self._backlogged.pop(tenant).weight

    def entitled(self, tenant: str) -> float:
        """The tokens that the tenant should have received by now."""
        known = self._tenants.get(tenant)
        if known is None:
            return 0.0
        return (known.arrived - known.weight * max(0, known.finish - self._v)) / RESOLUTION

    def _finish(self, tenant: str, tag: int) -> None:
        """Give a backlogged tenant a new finish tag."""
        self._backlogged[tenant].finish = tag
        heappush(self._finishes, (tag, tenant))
        if len(self._finishes) > 2 * len(self._backlogged) + _SPARE_ENTRIES:
            self._finishes = [(known.finish, name) for name, known in self._backlogged.items()]
            heapify(self._finishes)

    def _first_to_finish(self) -> tuple[str, int]:
        """The backlogged tenant with the least finish tag; there is one."""
        while True:
            finish, tenant = self._finishes[0]
            known = self._backlogged.get(tenant)
            if known is not None and known.finish == finish:
                return tenant, finish
            heappop(self._finishes)
