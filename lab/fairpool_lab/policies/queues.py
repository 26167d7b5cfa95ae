"""What nearly all orders have in common: a queue and a weight for each tenant, and a decision made of a tenant's head.

A policy is then what it should be, the answer to one question: whose head goes next? Within a tenant requests go in
order of arrival, whatever the policy (§1.1).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator, Mapping
from typing import Generic, TypedDict, TypeVar

from fairpool_gateway.sfq import Decision, Meter, charge
from fairpool_lab.policies.policy import Hearing, Sight

R = TypeVar("R", bound=Hashable)


class Pool(TypedDict, Generic[R], total=False):
    """What every policy is made with besides the price: what `TenantQueues` takes by name."""

    weights: Mapping[str, int]
    default_weight: int
    max_tenants: int
    sight: Sight[R]


class TenantQueues(Hearing[R]):
    """Queues without an order between them: a policy overrides `choose`, and which of the other hooks it needs.

    No tenant is ever put together with others: how fresh identities fare is one of the things that the lab measures.

    Attributes:
        price: the cost of a request in tokens.
        sight: what else can be seen.
        queues: the queue of each backlogged tenant, in the order in which they became so.
        least_weight: the least weight there was at the start: for that one is what a policy grants, for others more.
    """

    def __init__(
        self,
        price: Callable[[R], int],
        *,
        weights: Mapping[str, int] | None = None,
        default_weight: int = 100,
        max_tenants: int = 10_000,  # noqa: ARG002 - every Ordering is made with it
        sight: Sight[R] | None = None,
    ) -> None:
        self.price = price
        self.sight: Sight[R] = Sight() if sight is None else sight
        self.queues: OrderedDict[str, OrderedDict[R, None]] = OrderedDict()
        self.v = 0
        self.waiting = 0
        self._weights = dict(weights or {})
        self._default_weight = default_weight
        self.least_weight = min((default_weight, *self._weights.values()))

    def choose(self) -> str | None:
        """The backlogged tenant whose head goes next; there is at least one. None holds all of them back."""
        raise NotImplementedError

    def joined(self, tenant: str) -> None:
        """The tenant is backlogged from now on."""

    def took(self, decision: Decision[R]) -> None:
        """This was decided; its request is in the queue no longer."""

    def left(self, tenant: str) -> None:
        """The tenant is backlogged no longer."""

    def meter(self, tenant: str) -> int:  # noqa: ARG002 - a hook
        """What the policy counts for a tenant, if it counts anything that can be shown."""
        return 0

    def head(self, tenant: str) -> R:
        """The oldest request of a backlogged tenant."""
        return next(iter(self.queues[tenant]))

    def identify(self, tenant: str) -> str:
        """The tenant under which this one's requests are queued: itself."""
        return tenant

    def weight(self, tenant: str) -> int:
        """The weight that the tenant's next charge will be divided by."""
        return self._weights.get(tenant, self._default_weight)

    def lags(self, tenant: str) -> bool:
        """Whether the tenant has nothing waiting: what a policy keeps of the idle is its own affair."""
        return tenant not in self.queues

    def arrive(self, tenant: str, request: R) -> str:
        """Append a request to its tenant's queue; returns its tenant."""
        queue = self.queues.get(tenant)
        if queue is not None:
            queue[request] = None
        else:
            self.queues[tenant] = OrderedDict({request: None})
            self.joined(tenant)
        self.waiting += 1
        return tenant

    def remove(self, tenant: str, request: R) -> None:
        """Take a waiting request out of the queue.

        Raises:
            KeyError: that request of that tenant does not wait.
        """
        queue = self.queues[tenant]
        del queue[request]
        self.waiting -= 1
        if not queue:
            del self.queues[tenant]
            self.left(tenant)

    def dispatch(self) -> Decision[R] | None:
        """A free slot asks for the next request; None if nothing waits, or all that does is held back."""
        if not self.waiting or (tenant := self.choose()) is None:
            return None
        queue, start_tag = self.queues[tenant], self.meter(tenant)
        request, _ = queue.popitem(last=False)
        self.waiting -= 1
        cost, weight = self.price(request), self.weight(tenant)
        decision = Decision(tenant, request, weight, cost, charge(cost, weight), start_tag)
        if not queue:
            del self.queues[tenant]
        self.took(decision)
        if not queue:
            self.left(tenant)
        return decision

    def reweigh(self, tenant: str, weight: int | None) -> None:
        """Give a tenant a weight of its own, or with None take it away."""
        if weight is None:
            self._weights.pop(tenant, None)
        else:
            self._weights[tenant] = weight

    def reweigh_default(self, weight: int) -> None:
        """Change the weight of all tenants that have none of their own."""
        self._default_weight = weight

    def meters(self) -> Iterator[Meter]:
        """Every tenant that waits."""
        for tenant, queue in self.queues.items():
            yield Meter(tenant, self.weight(tenant), self.meter(tenant), len(queue))
