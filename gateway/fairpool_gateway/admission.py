"""Admission: may this request wait here at all, and for how long. It never decides the order.

What is here is bounded in number and in bytes, for each tenant and for the pool: requests that wait, and by their bytes
the bodies that are still on their way in. What always holds: the counts equal what entered and did not leave, and a
tenant that has nothing here costs no memory. All requests of a pool wait equally long, so the oldest is always the
next to expire and one timer is enough for all of them.

Nobody can fill the pool for the others. Say n tenants have something here, the one that comes included. Who would hold
no more than 1/n of the pool's bound gets in: while there is no room, whoever holds most gives up its newest. There is
always such a one, for if n tenants would hold more than the bound in all, the one who holds most holds more than 1/n of
it, and that is not who comes. So too nobody gives up anything who holds no more than 1/n. Whoever would hold more than
1/n gets in while there is room. What is given up was never dispatched, so it was not charged.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from heapq import heapify, heapreplace
from typing import Any, Generic, TypeVar

import msgspec

from fairpool_gateway.config import PoolConfig
from fairpool_gateway.drain import DrainRate
from fairpool_gateway.errors import NoEndpoint, PoolSuspended, QueueFull, QueueTimeout, Refused, TenantSuspended

R = TypeVar("R", bound="Hashable")

TurnedAway = list[tuple[R, Refused]]
"""Requests that have lost their places, and what their tenants are told."""


class Upload:
    """A body on its way in. It owns what has come, so that turning it away frees that at once.

    Attributes:
        tenant: whose it is.
        body: what has come.
        refusal: why it may not go on, once it may not.
    """

    __slots__ = ("body", "refusal", "tenant")

    def __init__(self, tenant: str) -> None:
        self.tenant = tenant
        self.body = bytearray()
        self.refusal: Refused | None = None


class _Held(Generic[R]):
    """What one tenant has here, the oldest first."""

    __slots__ = ("bytes", "uploads", "waiting")

    def __init__(self) -> None:
        self.bytes = 0
        self.waiting: dict[R, None] = {}
        self.uploads: dict[Upload, None] = {}


_NOTHING: _Held[Any] = _Held()
"""What a tenant has here that has nothing; never changed. Made anew each time it cost a request 3,400 instructions."""


class _Place(msgspec.Struct, frozen=True):
    """One request's place in the queue."""

    tenant: str
    size: int
    since: float


class Admission(Generic[R]):
    """The places of one pool's queue, and the bytes that are held for it."""

    def __init__(self, config: PoolConfig) -> None:
        self.bytes = 0
        self._places: OrderedDict[R, _Place] = OrderedDict()
        self._held: dict[str, _Held[R]] = {}
        self._drain = DrainRate()
        self.configure(config)

    @property
    def waiting(self) -> int:
        """How many requests wait."""
        return len(self._places)

    def configure(self, config: PoolConfig) -> TurnedAway[R]:
        """These are the rules from now on. What is here stays, beyond a bound that is lower now too.

        Only what is suspended is turned away: the requests of a tenant, or all of the pool's.
        """
        self._pool = config.pool
        self._all_suspended = config.suspend
        self._suspended = config.suspended()
        self._bounds = config.queue
        self._own_bounds = config.own_queues()
        if not self._all_suspended and not self._suspended:
            return []
        return self.review(lambda request: self._suspension(self._places[request].tenant))

    def review(self, verdict: Callable[[R], Refused | None]) -> TurnedAway[R]:
        """Take their places from the requests that the verdict refuses."""
        waiting = [(request, verdict(request)) for request in self._places]
        turned_away = [(request, refusal) for request, refusal in waiting if refusal is not None]
        for request, _ in turned_away:
            self.leave(request)
        return turned_away

    def receive(self, now: float, upload: Upload, piece: bytes) -> TurnedAway[R]:
        """Keep a piece of a body, or turn the upload away; and with either, who had to make room for it."""
        if upload.refusal is not None:
            return []
        try:
            turned_away = self._make_room(now, upload.tenant, requests=0, size=len(piece))
        except QueueFull as refusal:
            self._turn_upload_away(upload, refusal)
            return []
        self._hold(upload.tenant, len(piece)).uploads[upload] = None
        upload.body += piece
        return turned_away

    def release(self, upload: Upload) -> None:
        """The body has come, or never will: it is held here no longer."""
        held = self._held.get(upload.tenant)
        if held is not None and upload in held.uploads:
            del held.uploads[upload]
            self._let_go(upload.tenant, len(upload.body))

    def enter(self, now: float, tenant: str, request: R, size: int) -> TurnedAway[R]:
        """Give a request of `size` bytes a place; returns who had to make room for it.

        Raises:
            PoolSuspended, TenantSuspended: nothing of this tenant's may wait now.
            QueueFull: the tenant, or the pool, has as much waiting as it may.
        """
        if (refusal := self._suspension(tenant)) is not None:
            raise refusal
        turned_away = self._make_room(now, tenant, requests=1, size=size)
        self._places[request] = _Place(tenant, size, now)
        self._hold(tenant, size).waiting[request] = None
        return turned_away

    def leave(self, request: R) -> float:
        """Free a request's place; returns since when it waited."""
        place = self._places.pop(request)
        del self._held[place.tenant].waiting[request]
        self._let_go(place.tenant, place.size)
        return place.since

    def dispatched(self, now: float, request: R) -> float:
        """Free the place of a request that got a slot; returns for how many seconds it waited."""
        self._drain.note(now)
        return now - self.leave(request)

    def expire(self, now: float, *, endpoints: bool) -> TurnedAway[R]:
        """Turn away who has waited for as long as is allowed, the oldest first. `endpoints`: whether there are any."""
        late: list[R] = []
        for request, place in self._places.items():
            if now < place.since + self._bounds.timeout:
                break
            late.append(request)
        turned_away = [(request, self._in_vain(now, endpoints=endpoints)) for request in late]
        for request in late:
            self.leave(request)
        return turned_away

    def next_expiry(self) -> float | None:
        """When the oldest request will have waited for as long as it may; None if nothing waits."""
        for place in self._places.values():
            return place.since + self._bounds.timeout
        return None

    def _suspension(self, tenant: str) -> Refused | None:
        if self._all_suspended:
            return PoolSuspended.of(self._pool)
        return TenantSuspended.of(tenant) if tenant in self._suspended else None

    def _in_vain(self, now: float, *, endpoints: bool) -> Refused:
        waited, retry_after = f"{self._bounds.timeout:g} s", self._retry_after(now, self.waiting)
        if endpoints:
            message = f"No slot came free within {waited}: the pool is busy. Retry later."
            return QueueTimeout(message, retry_after=retry_after)
        return NoEndpoint(f"No endpoint became ready within {waited}. Retry later.", retry_after=retry_after)

    def _retry_after(self, now: float, waiting: int) -> int:
        """When to come back, for whom so many are ahead of."""
        oldest = next((place.since for place in self._places.values()), now)
        return self._drain.seconds(now, waiting, now - oldest)

    def _make_room(self, now: float, tenant: str, *, requests: int, size: int) -> TurnedAway[R]:
        """Have room for so much more of a tenant's; returns who had to make it."""
        bounds, mine = self._bounds, self._own_bounds.get(tenant, self._bounds.per_tenant)
        held = self._held.get(tenant, _NOTHING)
        places, total = len(held.waiting) + requests, held.bytes + size
        if places > mine.max_requests or total > mine.max_bytes:
            raise QueueFull(
                f"This tenant has {len(held.waiting)} requests waiting, and {held.bytes} bytes in them and on their "
                "way here: no more may. Send fewer at once, or retry later.",
                retry_after=self._retry_after(now, len(held.waiting)),
            )
        few = not requests or self.waiting < bounds.max_requests
        small = self.bytes + size <= bounds.max_bytes
        if few and small:
            return []
        tenants = len(self._held) + (tenant not in self._held)
        if (few or places * tenants <= bounds.max_requests) and (small or total * tenants <= bounds.max_bytes):
            return self._take_from_who_holds_most(now, a_place=not few, size=size)
        raise QueueFull(
            "The queue of this pool is full. Retry later.", retry_after=self._retry_after(now, self.waiting)
        )

    def _take_from_who_holds_most(self, now: float, *, a_place: bool, size: int) -> TurnedAway[R]:
        """Have given up what is missing; no more than what comes, where more is here than a bound that is lower now."""
        most_bytes = max(self._bounds.max_bytes, self.bytes)
        turned_away: TurnedAway[R] = []
        if a_place:
            held = next(self._who_holds_most(lambda held: len(held.waiting)))
            turned_away.append(self._give_up_request(now, held))
        if self.bytes + size <= most_bytes:
            return turned_away
        for held in self._who_holds_most(lambda held: held.bytes):
            if held.uploads:
                self._turn_upload_away(next(reversed(held.uploads)), self._displaced(now))
            else:
                turned_away.append(self._give_up_request(now, held))
            if self.bytes + size <= most_bytes:
                break
        return turned_away

    def _who_holds_most(self, measure: Callable[[_Held[R]], int]) -> Iterator[_Held[R]]:
        """Whoever holds most, time and again. O(T) in T tenants for the first one and O(log T) for each further one."""
        heap = [(-measure(held), number, held) for number, held in enumerate(self._held.values())]
        heapify(heap)
        while True:
            _, number, held = heap[0]
            yield held
            heapreplace(heap, (-measure(held), number, held))

    def _give_up_request(self, now: float, held: _Held[R]) -> tuple[R, Refused]:
        newest = next(reversed(held.waiting))
        self.leave(newest)
        return newest, self._displaced(now)

    def _displaced(self, now: float) -> Refused:
        return QueueFull(
            "The queue of this pool is full, and most of it is this tenant's. Send fewer at once, or retry later.",
            retry_after=self._retry_after(now, self.waiting),
        )

    def _turn_upload_away(self, upload: Upload, refusal: Refused) -> None:
        self.release(upload)
        upload.body.clear()
        upload.refusal = refusal

    def _hold(self, tenant: str, size: int) -> _Held[R]:
        self.bytes += size
        held = self._held.get(tenant)
        if held is None:
            held = self._held[tenant] = _Held()
        held.bytes += size
        return held

    def _let_go(self, tenant: str, size: int) -> None:
        self.bytes -= size
        held = self._held[tenant]
        held.bytes -= size
        if not held.waiting and not held.uploads:
            del self._held[tenant]
