"""A limit on requests per minute: what most providers do instead of ordering, and the one policy that wastes slots.

Source: the baseline RPM of Sheng et al., "Fairness in Serving Large Language Models", OSDI 2024: of each client so many
requests are accepted in any 60 seconds, and those that are go in order of arrival.

Chosen here: the paper's artifact rejects a request beyond the limit when it arrives; here it waits until it is within
it, so that all policies serve the same requests, and what counts are dispatches. The limit is for the least weight that
there was at the start; others' are in proportion, rounded down, at least 1. A new weight counts at once.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Hashable
from typing import Final, TypeVar, Unpack

from fairpool_gateway.sfq import Decision
from fairpool_lab.policies.least import Least
from fairpool_lab.policies.queues import Pool, TenantQueues

MINUTE: Final = 60.0

R = TypeVar("R", bound=Hashable)


class RequestsPerMinute(TenantQueues[R]):
    """Arrival order among the tenants that have not used up a minute's requests.

    Args:
        price: the cost of a request in tokens.
        per_minute: how many requests a minute a tenant of the least weight has.
        pool: as for every policy.
    """

    def __init__(self, price: Callable[[R], int], *, per_minute: int = 20, **pool: Unpack[Pool[R]]) -> None:
        super().__init__(price, **pool)
        self._per_minute = per_minute
        self._now = 0.0
        # The dispatches of the last minute, and how many of them are whose.
        self._recent: deque[tuple[float, str]] = deque()
        self._used = Counter[str]()
        self._arrivals = 0
        self._numbers: dict[R, int] = {}
        self._within = Least()

    def advance(self, now: float) -> None:
        """What is a minute ago counts no longer."""
        self._now = now
        while self._recent and self._recent[0][0] + MINUTE <= now:
            _, tenant = self._recent.popleft()
            self._used[tenant] -= 1
            self._place(tenant)

    def next_change(self) -> float | None:
        """When the oldest dispatch counts no longer, if everybody who waits has used up the minute."""
        return None if self._within or not self.queues else self._recent[0][0] + MINUTE

    def arrive(self, tenant: str, request: R) -> str:
        """Number the request by its arrival."""
        self._numbers[request] = self._arrivals = self._arrivals + 1
        return super().arrive(tenant, request)

    def remove(self, tenant: str, request: R) -> None:
        """Its place goes to who stands behind it."""
        super().remove(tenant, request)
        del self._numbers[request]
        self._place(tenant)

    def choose(self) -> str | None:
        """The tenant of the oldest request within its limit."""
        return self._within.first()[1] if self._within else None

    def joined(self, tenant: str) -> None:
        """It competes, if it has requests left."""
        self._place(tenant)

    def took(self, decision: Decision[R]) -> None:
        """One request of this minute is used."""
        self._recent.append((self._now, decision.tenant))
        self._used[decision.tenant] += 1
        del self._numbers[decision.request]
        self._place(decision.tenant)

    def reweigh(self, tenant: str, weight: int | None) -> None:
        """The tenant's limit changes at once."""
        super().reweigh(tenant, weight)
        self._place(tenant)

    def reweigh_default(self, weight: int) -> None:
        """So do the limits of all tenants that have no weight of their own."""
        super().reweigh_default(weight)
        for tenant in self.queues:
            self._place(tenant)

    def _place(self, tenant: str) -> None:
        """Let the tenant compete by its oldest request, if it waits and is within its limit."""
        limit = max(1, self._per_minute * self.weight(tenant) // self.least_weight)
        if tenant in self.queues and self._used[tenant] < limit:
            self._within.put(tenant, self._numbers[self.head(tenant)])
        else:
            self._within.discard(tenant)
