"""Start-time Fair Queueing: whose request goes next, so that tenants who wait get GPU work by weight.

Each tenant has a queue and a meter `S_i`, the start tag of its next request. The backlogged tenant with the least
`(S_i, tenant id)` goes next; virtual time `v` becomes that start tag, and the meter moves by the charge
`ceil(c * Q / w)`, once, at dispatch (§2.3, §4.4). Who comes back starts at `max(S_i, v)` (§2.4). When a free slot
finds nobody backlogged, `v` jumps to the greatest finish tag and every meter is forgotten (§2.5, but not on a
removal, or a tenant alone in waiting could cancel and resubmit to have its lead wiped).

What always holds (§3.1): `v` never decreases; a backlogged tenant has `S_i >= v`; every `S_i <= v +` its last
charge. Meters are integers in units of `1/Q` token, so the same events give the same decisions in every process
(§7.3). Nothing but `dispatch` and a join moves a meter: no completion, no removal, no weight change.

A decision costs amortised O(log T) in T backlogged tenants. One heap lists those who wait. Removals leave entries of
emptied tenants behind in it, which go when they surface, so before `v` passes them, or when they are the majority.
Another heap parks the idle who lead, by a meter that may have grown since; each dispatch looks at two whom virtual
time caught up with, and forgets those still idle. So memory follows the tenants who wait or lead, and these are
bounded: beyond `max_tenants` without a weight of their own, all strangers share one tenant, `OTHER`, for fresh
identities are served at `v` and would otherwise starve the rest.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator, Mapping
from heapq import heapify, heappop, heappush, heapreplace
from typing import Final, Generic, TypeVar

import msgspec

Q: Final = 1 << 32
"""Units per token: meters and charges are integers in this measure."""

OTHER: Final = "_other"
"""The tenant that all strangers beyond the bound share."""

LEAST_WEIGHT, MOST_WEIGHT = 1, 1000

_FORGET_PER_DISPATCH = 2
"""Each dispatch can make one tenant idle, so forgetting two keeps up."""

R = TypeVar("R", bound="Hashable")


def charge(cost: int, weight: int) -> int:
    """The charge of a request, in units of 1/Q token: `ceil(cost * Q / weight)`, never below one."""
    return -(-cost * Q // weight) if cost > 0 else 1


class Decision(msgspec.Struct, Generic[R], frozen=True):
    """One dispatch: whose request went, and how it was charged. `charge`, `start_tag` in units of 1/Q token."""

    tenant: str
    request: R
    weight: int
    cost: int
    charge: int
    start_tag: int


class Meter(msgspec.Struct, frozen=True):
    """What can be seen of one tenant: its meter in units of 1/Q token, and how many requests wait."""

    tenant: str
    weight: int
    meter: int
    waiting: int


class _Tenant(Generic[R]):
    """One tenant's queue and meter, and whether it has an entry in either heap."""

    __slots__ = ("listed", "meter", "name", "parked", "queue", "weight")

    def __init__(self, name: str, weight: int, meter: int) -> None:
        self.name = name
        self.weight = weight
        self.meter = meter
        self.queue: OrderedDict[R, None] = OrderedDict()
        self.listed = False
        self.parked = False


class Scheduler(Generic[R]):
    """The order of one pool.

    Args:
        price: the cost of a request in tokens, asked once, at its dispatch.
        weights: the tenants that have a weight of their own, 1 to 1000.
        default_weight: everybody else's.
        max_tenants: how many tenants without a weight of their own are told apart at a time.
    """

    def __init__(
        self,
        price: Callable[[R], int],
        *,
        weights: Mapping[str, int] | None = None,
        default_weight: int = 100,
        max_tenants: int = 10_000,
    ) -> None:
        self._price = price
        self._weights = dict(weights or {})
        self._default_weight = default_weight
        self._max_strangers = max_tenants
        for weight in (*self._weights.values(), default_weight):
            _check_weight(weight)
        self.v = 0
        self.waiting = 0
        self._latest_finish = 0
        self._tenants: dict[str, _Tenant[R]] = {}
        self._strangers = 0
        # Entries are (meter, name, tenant), a parked one's meter perhaps an old one; tenants are never compared.
        self._listed: list[tuple[int, str, _Tenant[R]]] = []
        self._parked: list[tuple[int, str, _Tenant[R]]] = []
        self._emptied = 0

    def identify(self, tenant: str) -> str:
        """The tenant under which this one's requests are queued: itself, or `OTHER` beyond the bound."""
        if tenant in self._tenants or tenant in self._weights or self._strangers < self._max_strangers:
            return tenant
        return OTHER

    def weight(self, tenant: str) -> int:
        """The weight that the tenant's next charge will be divided by."""
        return self._weights.get(tenant, self._default_weight)

    def lags(self, tenant: str) -> bool:
        """Whether the tenant, should it become backlogged now, joins from behind virtual time (`S_i < v`) or anew."""
        known = self._tenants.get(tenant)
        return known is None or (not known.queue and known.meter < self.v)

    def arrive(self, tenant: str, request: R) -> str:
        """Append a request to its tenant's queue; returns the tenant that `remove` must name.

        A request may wait only once: the caller keeps requests distinct.
        """
        known = self._tenants.get(tenant) or self._join(self.identify(tenant))
        if not known.queue:
            if known.listed:
                self._emptied -= 1
            else:
                known.listed = True
                known.meter = max(known.meter, self.v)
                heappush(self._listed, (known.meter, known.name, known))
        known.queue[request] = None
        self.waiting += 1
        return known.name

    def remove(self, tenant: str, request: R) -> None:
        """Take a waiting request out of the queue. No meter moves, and virtual time does not either.

        Raises:
            KeyError: that request does not wait there.
        """
        known = self._tenants[tenant]
        del known.queue[request]
        self.waiting -= 1
        if not known.queue:
            self._emptied += 1
            self._compact()

    def dispatch(self) -> Decision[R] | None:
        """A free slot asks for the next request; None, and a fresh start for all, if nobody is backlogged.

        To be called only when a slot is free: that is what makes forgetting the meters safe (§2.5, §3.4).
        """
        if not self.waiting:
            self._reset()
            return None
        known = self._least()
        request, _ = known.queue.popitem(last=False)
        self.waiting -= 1
        start_tag = self.v = known.meter
        cost = self._price(request)
        charged = charge(cost, known.weight)
        known.meter = finish_tag = start_tag + charged
        self._latest_finish = max(self._latest_finish, finish_tag)
        if known.queue:
            heapreplace(self._listed, (finish_tag, known.name, known))
        else:
            heappop(self._listed)
            self._retire(known)
            self._compact()
        if self._parked:
            self._forget_caught_up()
        return Decision(known.name, request, known.weight, cost, charged, start_tag)

    def reweigh(self, tenant: str, weight: int | None) -> None:
        """Give a tenant a weight of its own, or with None take it away; it counts from the next charge."""
        if weight is not None:
            _check_weight(weight)
        known = self._tenants.get(tenant)
        if known is not None and tenant != OTHER:
            self._strangers += (tenant in self._weights) - (weight is not None)
        if weight is None:
            self._weights.pop(tenant, None)
        else:
            self._weights[tenant] = weight
        if known is not None:
            known.weight = self.weight(tenant)

    def reweigh_default(self, weight: int) -> None:
        """Change the weight of all tenants that have none of their own, from their next charge on. O(T)."""
        _check_weight(weight)
        self._default_weight = weight
        for known in self._tenants.values():
            known.weight = self.weight(known.name)

    def meters(self) -> Iterator[Meter]:
        """Every tenant that waits or is remembered, in no particular order."""
        for known in self._tenants.values():
            yield Meter(known.name, known.weight, known.meter, len(known.queue))

    def _join(self, name: str) -> _Tenant[R]:
        known = self._tenants.get(name)
        if known is None:
            known = self._tenants[name] = _Tenant(name, self.weight(name), self.v)
            self._strangers += self._is_stranger(name)
        return known

    def _is_stranger(self, name: str) -> bool:
        return name not in self._weights and name != OTHER

    def _least(self) -> _Tenant[R]:
        """The backlogged tenant with the least (meter, name); its entry is left on top."""
        listed = self._listed
        while not (known := listed[0][2]).queue:
            heappop(listed)
            self._emptied -= 1
            self._retire(known)
        return known

    def _retire(self, known: _Tenant[R]) -> None:
        """Remember an idle tenant that has left the order for as long as it leads, and no longer."""
        known.listed = False
        if known.meter <= self.v:
            if not known.parked:
                self._forget(known)
        elif not known.parked:
            known.parked = True
            heappush(self._parked, (known.meter, known.name, known))

    def _forget_caught_up(self) -> None:
        """Forget idle tenants that virtual time has caught up with, a bounded number at a time."""
        parked = self._parked
        for _ in range(_FORGET_PER_DISPATCH):
            if not parked or parked[0][0] > self.v:
                return
            _, name, known = parked[0]
            if not known.listed and known.meter > self.v:
                heapreplace(parked, (known.meter, name, known))
                continue
            heappop(parked)
            known.parked = False
            if not known.listed:
                self._forget(known)

    def _forget(self, known: _Tenant[R]) -> None:
        del self._tenants[known.name]
        self._strangers -= self._is_stranger(known.name)

    def _compact(self) -> None:
        """Drop the entries of emptied tenants once they are the majority; O(T), paid for by as many removals."""
        if 2 * self._emptied <= len(self._listed):
            return
        emptied = [known for _, _, known in self._listed if not known.queue]
        self._listed = [entry for entry in self._listed if entry[2].queue]
        heapify(self._listed)
        self._emptied = 0
        for known in emptied:
            self._retire(known)

    def _reset(self) -> None:
        """Nobody waits for the slot that is free: the next competition starts level (§2.5)."""
        self.v = max(self.v, self._latest_finish)
        if self._tenants:
            self._tenants.clear()
            self._parked.clear()
            self._strangers = 0


def _check_weight(weight: int) -> None:
    if not LEAST_WEIGHT <= weight <= MOST_WEIGHT:
        raise ValueError(f"a weight is {LEAST_WEIGHT} to {MOST_WEIGHT}, not {weight}")
