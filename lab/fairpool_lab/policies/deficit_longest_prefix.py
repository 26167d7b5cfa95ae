"""DLPM: the longest cached prefix goes next, among the tenants that have not used up their quantum.

Source: Cao et al., "Locality-aware Fair Scheduling in LLM Serving", arXiv 2501.14312 (2025), the algorithm DLPM for one
engine. Requests are taken by how much of their prompt is cached, but only of clients whose deficit counter is above 0.
A dispatch takes from the counter what has to be computed of the prompt, and each generated token takes its cost. When
no client that waits has anything left, those at 0 or below get a quantum, again and again until one has.

Chosen here: quanta are proportional to weights, `quantum` tokens for the least weight that there was at the start.
Counters start at 0, nobody's is raised while it is above, and an idle tenant's debt is paid off along with the others'
and does not wait for it. Of equal prefixes the request that arrived first goes.

Only the heads of queues compete. The paper also takes a client's own requests out of order; here they are FIFO under
every policy (§1.1, §8), which costs DLPM some of its locality.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable
from typing import TypeVar, Unpack

from fairpool_gateway.sfq import Decision
from fairpool_lab.policies.queues import Pool, TenantQueues

R = TypeVar("R", bound=Hashable)


class DeficitLongestPrefixMatch(TenantQueues[R]):
    """Deficit counters over longest prefix match; a choice is O(T) in backlogged tenants, for caches change.

    Args:
        price: the cost of a request in tokens.
        quantum: the tokens that a tenant of the least weight gets when all have used up theirs.
        pool: as for every policy.
    """

    def __init__(self, price: Callable[[R], int], *, quantum: int = 4096, **pool: Unpack[Pool[R]]) -> None:
        super().__init__(price, **pool)
        self._quantum = quantum
        # Counters are in 1/parts token, so that every tenant's quantum is a whole number.
        self._parts = self.least_weight
        self._deficits = defaultdict[str, int](int)
        self._in_flight: dict[R, str] = {}
        self._arrivals = 0
        self._numbers: dict[R, int] = {}

    def arrive(self, tenant: str, request: R) -> str:
        """Number the request by its arrival."""
        self._numbers[request] = self._arrivals = self._arrivals + 1
        return super().arrive(tenant, request)

    def remove(self, tenant: str, request: R) -> None:
        """Forget its number."""
        super().remove(tenant, request)
        del self._numbers[request]

    def choose(self) -> str:
        """Of those who may, the one whose head has the longest cached prefix."""
        able = [tenant for tenant in self.queues if self._deficits[tenant] > 0]
        if not able:
            self._refill()
            able = [tenant for tenant in self.queues if self._deficits[tenant] > 0]
        return min(able, key=self._place)

    def took(self, decision: Decision[R]) -> None:
        """What must be computed of the prompt is paid at once."""
        request = decision.request
        del self._numbers[request]
        self._in_flight[request] = decision.tenant
        self._pay(decision.tenant, self.sight.input_tokens(request) - self.sight.cached(request), 0)

    def progressed(self, request: R, input_tokens: int, output_tokens: int) -> None:  # noqa: ARG002 - paid already
        """What is generated is paid as it comes."""
        self._pay(self._in_flight[request], 0, output_tokens)

    def finished(self, request: R) -> None:
        """It is in flight no more."""
        del self._in_flight[request]

    def _place(self, tenant: str) -> tuple[int, int]:
        request = self.head(tenant)
        return -self.sight.cached(request), self._numbers[request]

    def _pay(self, tenant: str, input_tokens: int, output_tokens: int) -> None:
        self._deficits[tenant] -= self.sight.cost(input_tokens, output_tokens) * self._parts

    def _refill(self) -> None:
        """As many times as it takes for somebody who waits to have something."""
        times = min(self._lacking(tenant) for tenant in self.queues)
        for tenant, deficit in self._deficits.items():
            if deficit <= 0:
                self._deficits[tenant] += min(times, self._lacking(tenant)) * self._grant(tenant)

    def _grant(self, tenant: str) -> int:
        return self._quantum * self.weight(tenant)

    def _lacking(self, tenant: str) -> int:
        """How many quanta the tenant, who has nothing left, needs to have something."""
        return -self._deficits[tenant] // self._grant(tenant) + 1
