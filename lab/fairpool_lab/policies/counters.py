"""A counter per tenant, of which the least goes next: the frame of the orders that count what was served.

Counters may move at any time, for instance while a request generates tokens, and both ways. With the lift of VTC
(Sheng et al., OSDI 2024, Algorithm 2) who becomes backlogged is raised to the least counter of those who are or, if
nobody is, to that of who was last to be: idleness cannot be saved up.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable
from typing import TypeVar, Unpack

from fairpool_lab.policies.least import Least
from fairpool_lab.policies.queues import Pool, TenantQueues

R = TypeVar("R", bound=Hashable)


class LeastCounter(TenantQueues[R]):
    """Counters, and no lift: who was idle comes back with the counter that it left with."""

    def __init__(self, price: Callable[[R], int], **pool: Unpack[Pool[R]]) -> None:
        super().__init__(price, **pool)
        self._counters = defaultdict[str, int](int)
        self._waiting = Least()

    def count(self, tenant: str, amount: int) -> None:
        """Move the tenant's counter."""
        self._counters[tenant] += amount
        if tenant in self._waiting:
            self._waiting.put(tenant, self._counters[tenant])

    def choose(self) -> str:
        """The backlogged tenant with the least counter."""
        return self._waiting.first()[1]

    def joined(self, tenant: str) -> None:
        """It competes with the counter that it has."""
        self._waiting.put(tenant, self._counters[tenant])

    def left(self, tenant: str) -> None:
        """It competes no more."""
        self._waiting.discard(tenant)

    def meter(self, tenant: str) -> int:
        """The counter."""
        return self._counters[tenant]


class LiftedCounter(LeastCounter[R]):
    """Counters with the lift."""

    def __init__(self, price: Callable[[R], int], **pool: Unpack[Pool[R]]) -> None:
        super().__init__(price, **pool)
        self._last_to_leave: str | None = None

    def joined(self, tenant: str) -> None:
        """Nobody comes back with a counter below all others."""
        if self._waiting:
            lifted = self._waiting.first()[0]
        else:
            lifted = 0 if self._last_to_leave is None else self._counters[self._last_to_leave]
        self._counters[tenant] = max(self._counters[tenant], lifted)
        super().joined(tenant)

    def left(self, tenant: str) -> None:
        """Where the next lift starts if nobody else waits."""
        super().left(tenant)
        self._last_to_leave = tenant
