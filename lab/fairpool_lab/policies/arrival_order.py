"""Order of arrival, to set beside the fair order: the oldest request goes next, whoever sent it.

The same dispatcher carries it, and it charges as `sfq.Scheduler` does, so both runs are measured alike. Weights and
costs decide nothing. There is no virtual time: `v` and every start tag stay 0. Of an idle tenant nothing is kept, and
nobody gains by a fresh identity, so strangers need no bound.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Callable, Hashable, Iterator, Mapping
from typing import TypeVar

from fairpool_gateway.sfq import Decision, Meter, charge
from fairpool_lab.policies.policy import Sight, Unmoved

R = TypeVar("R", bound=Hashable)


class ArrivalOrder(Unmoved[R]):
    """A `Policy`; made and used like `sfq.Scheduler`."""

    def __init__(
        self,
        price: Callable[[R], int],
        *,
        weights: Mapping[str, int] | None = None,
        default_weight: int = 100,
        max_tenants: int = 10_000,  # noqa: ARG002 - every Ordering is made with it
        sight: Sight[R] | None = None,  # noqa: ARG002 - every policy is made with it
    ) -> None:
        self._price = price
        self._weights = dict(weights or {})
        self._default_weight = default_weight
        self._queue: OrderedDict[R, str] = OrderedDict()
        self.v = 0
        self.waiting = 0

    def identify(self, tenant: str) -> str:
        """The tenant under which this one's requests are queued: itself."""
        return tenant

    def weight(self, tenant: str) -> int:
        """The weight that the tenant's next charge will be divided by."""
        return self._weights.get(tenant, self._default_weight)

    def lags(self, tenant: str) -> bool:
        """Whether the tenant has nothing waiting."""
        return tenant not in self._queue.values()

    def arrive(self, tenant: str, request: R) -> str:
        """Append a request to the one queue; returns its tenant."""
        self._queue[request] = tenant
        self.waiting += 1
        return tenant

    def remove(self, tenant: str, request: R) -> None:
        """Take a waiting request out of the queue.

        Raises:
            KeyError: that request of that tenant does not wait.
        """
        if self._queue.get(request) != tenant:
            raise KeyError(request)
        del self._queue[request]
        self.waiting -= 1

    def dispatch(self) -> Decision[R] | None:
        """A free slot asks for the next request; None if nothing waits."""
        if not self._queue:
            return None
        request, tenant = self._queue.popitem(last=False)
        self.waiting -= 1
        cost, weight = self._price(request), self.weight(tenant)
        return Decision(tenant, request, weight, cost, charge(cost, weight), self.v)

    def reweigh(self, tenant: str, weight: int | None) -> None:
        """Give a tenant a weight of its own, or with None take it away; only its charges show it."""
        if weight is None:
            self._weights.pop(tenant, None)
        else:
            self._weights[tenant] = weight

    def reweigh_default(self, weight: int) -> None:
        """Change the weight of all tenants that have none of their own."""
        self._default_weight = weight

    def meters(self) -> Iterator[Meter]:
        """Every tenant that waits; O(requests waiting)."""
        for tenant, waiting in Counter(self._queue.values()).items():
            yield Meter(tenant, self.weight(tenant), self.v, waiting)
