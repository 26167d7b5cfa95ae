"""A slow scheduler to hold the fast one against: the article read aloud, with rules 3 and 5 of the design.

Lists, a linear scan and fractions; no heap, no cache, and nothing is forgotten but by the reset. Sections of the
article are cited where they are obeyed. `support.sfq_broken` disobeys them one at a time.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction

from support.sfq_events import Request

from fairpool_gateway.sfq import Decision, Meter, Q


class Oracle:
    """Start-time Fair Queueing for any number of tenants, all of whom are told apart."""

    def __init__(
        self,
        price: Callable[[Request], int],
        *,
        weights: Mapping[str, int] | None = None,
        default_weight: int = 100,
    ) -> None:
        self.price = price
        self.weights = dict(weights or {})
        self.default_weight = default_weight
        self.v = 0
        self.greatest_finish = 0
        self.tags: dict[str, int] = {}
        self.queues: dict[str, list[Request]] = {}

    @property
    def backlogged(self) -> list[str]:
        return [tenant for tenant, queue in self.queues.items() if queue]

    @property
    def waiting(self) -> int:
        return sum(len(queue) for queue in self.queues.values())

    def weight(self, tenant: str) -> int:
        return self.weights.get(tenant, self.default_weight)

    def identify(self, tenant: str) -> str:
        return tenant

    def arrive(self, tenant: str, request: Request) -> str:
        """§2.6, 1: to the end of its tenant's queue, and from empty to non-empty by §2.4."""
        queue = self.queues.setdefault(tenant, [])
        if not queue:
            self.join(tenant)
        queue.append(request)
        return tenant

    def join(self, tenant: str) -> None:
        """§2.4: `S_i <- max(S_i, v)`, and a new tenant starts at `v`."""
        self.tags[tenant] = max(self.tags.get(tenant, self.v), self.v)

    def remove(self, tenant: str, request: Request) -> None:
        """§2.6, 4: no meter moves."""
        self.queues[tenant].remove(request)

    def dispatch(self) -> Decision[Request] | None:
        """§2.3: one decision."""
        if not self.backlogged:
            self.reset()
            return None
        tenant = self.choose()
        request = self.queues[tenant].pop(0)
        cost = self.price(request)
        weight = self.weight_of(tenant, request)
        charge = max(1, math.ceil(Fraction(cost * Q, weight)))
        start_tag = self.start_tag(tenant)
        self.take(tenant, start_tag, charge)
        return Decision(tenant, request, weight, cost, charge, start_tag)

    def choose(self) -> str:
        """§2.3, 1: the backlogged tenant with the least meter, ties by tenant id."""
        return min(self.backlogged, key=lambda tenant: (self.tags[tenant], tenant))

    def start_tag(self, tenant: str) -> int:
        return self.tags[tenant]

    def weight_of(self, tenant: str, request: Request) -> int:
        """§4.4, and rule 4 of the design: the weight in force at the dispatch."""
        return self.weight(tenant)

    def take(self, tenant: str, start_tag: int, charge: int) -> None:
        """§2.3, 2 and 4: virtual time, then the one charge."""
        self.v = start_tag
        self.tags[tenant] = start_tag + charge
        self.greatest_finish = max(self.greatest_finish, self.tags[tenant])

    def reset(self) -> None:
        """§2.5, when a free slot finds nobody backlogged."""
        self.v = max(self.v, self.greatest_finish)
        self.tags.clear()
        self.queues.clear()

    def ended(self, decision: Decision[Request], *, failed: bool) -> None:
        """§5.1: neither success nor failure moves a meter."""

    def reweigh(self, tenant: str, weight: int | None) -> None:
        if weight is None:
            self.weights.pop(tenant, None)
        else:
            self.weights[tenant] = weight

    def reweigh_default(self, weight: int) -> None:
        self.default_weight = weight

    def rebase(self) -> int:
        """§7.2: subtract `v` from everything, virtual time included; returns what was subtracted."""
        offset = self.v
        self.v = 0
        self.greatest_finish -= offset
        self.tags = {tenant: tag - offset for tenant, tag in self.tags.items()}
        return offset

    def meters(self) -> Iterator[Meter]:
        for tenant, tag in self.tags.items():
            yield Meter(tenant, self.weight(tenant), tag, len(self.queues.get(tenant, [])))
