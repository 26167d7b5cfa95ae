"""A limit on requests per minute: what most providers do instead of ordering, and the one policy that wastes slots.

Source: the baseline RPM of Sheng et al., "Fairness in Serving Large Language Models", OSDI 2024, §2 and §5: within a
minute each client may have so many requests served, and those within their limits go in order of arrival.

What the source leaves open was chosen so: minutes are fixed windows that begin with the clock's zero, as in most such
limiters; a request beyond the limit waits for the next window and is not rejected, so that all policies serve the same
requests; the limit is that of a tenant with the default weight, and others' are in proportion, rounded down, at
least 1. A weight counts at once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable
from typing import Final, TypeVar, Unpack

from fairpool_gateway.sfq import Decision
from fairpool_lab.policies.least import Least
from fairpool_lab.policies.queues import Pool, TenantQueues

WINDOW: Final = 60.0
"""Seconds for which a limit is."""

R = TypeVar("R", bound=Hashable)


class RequestsPerMinute(TenantQueues[R]):
    """Arrival order among the tenants that have not used up this minute's requests.

    Args:
        price: the cost of a request in tokens.
        per_minute: how many requests a minute a tenant of the default weight has.
        pool: as for every policy.
    """

    def __init__(self, price: Callable[[R], int], *, per_minute: int = 20, **pool: Unpack[Pool[R]]) -> None:
        super().__init__(price, **pool)
        self._per_minute = per_minute
        self._window = 0
        self._used = Counter[str]()
        self._arrivals = 0
        self._numbers: dict[R, int] = {}
        self._within = Least()

    def advance(self, now: float) -> None:
        """A new minute forgets the old one."""
        window = int(now // WINDOW)
        if window != self._window:
            self._window = window
            self._used.clear()
            self._review()

    def next_change(self) -> float | None:
        """The end of this minute, if everybody who waits has used it up."""
        return None if self._within or not self.queues else (self._window + 1) * WINDOW

    def arrive(self, tenant: str, request: R) -> str:
        """Number the request by its arrival."""
        self._numbers[request] = self._arrivals = self._arrivals + 1
        return super().arrive(tenant, request)

    def remove(self, tenant: str, request: R) -> None:
        """Its place goes to who stands behind it."""
        super().remove(tenant, request)
        del self._numbers[request]
        if tenant in self.queues:
            self._place(tenant)

    def choose(self) -> str | None:
        """The tenant of the oldest request within its limit."""
        return self._within.first()[1] if self._within else None

    def joined(self, tenant: str) -> None:
        """It competes, if it has requests left."""
        self._place(tenant)

    def took(self, decision: Decision[R]) -> None:
        """One request of this minute is used."""
        self._used[decision.tenant] += 1
        del self._numbers[decision.request]
        if decision.tenant in self.queues:
            self._place(decision.tenant)

    def left(self, tenant: str) -> None:
        """It competes no more."""
        self._within.discard(tenant)

    def reweigh(self, tenant: str, weight: int | None) -> None:
        """The tenant's limit changes at once."""
        super().reweigh(tenant, weight)
        self._review()

    def reweigh_default(self, weight: int) -> None:
        """The limits of tenants with a weight of their own change: all are relative to the default."""
        super().reweigh_default(weight)
        self._review()

    def _review(self) -> None:
        for tenant in self.queues:
            self._place(tenant)

    def _place(self, tenant: str) -> None:
        limit = max(1, self._per_minute * self.weight(tenant) // self._default_weight)
        if self._used[tenant] < limit:
            self._within.put(tenant, self._numbers[self.head(tenant)])
        else:
            self._within.discard(tenant)
