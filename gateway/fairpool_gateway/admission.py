"""Admission: may this request wait here at all, and for how long. It never decides the order.

What waits is bounded in number and bytes, for each tenant and for the pool, so that memory is bounded and nobody can
fill the queue for all. What always holds: the counts equal the requests that entered and did not leave, and a tenant
that has nothing waiting costs no memory. All requests of a pool wait equally long, so the oldest is always the next
to expire and one timer is enough for all of them.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Generic, TypeVar

from fairpool_gateway.config import QueueSettings
from fairpool_gateway.errors import RETRY_AFTER_MOST, QueueFull

R = TypeVar("R", bound="Hashable")

_MEMORY = 10.0
"""Seconds over which the drain rate is averaged."""


class DrainRate:
    """How fast requests leave the queue, so that a refusal can say when to come back.

    An exponential average over the last seconds: each departure adds `1/_MEMORY`, and all of it fades with time.
    """

    def __init__(self) -> None:
        self._rate = 0.0
        self._at = 0.0

    def note(self, now: float) -> None:
        """One request left the queue for a slot."""
        self._rate = self._faded(now) + 1 / _MEMORY
        self._at = now

    def seconds(self, now: float, waiting: int) -> int:
        """How long until this many are gone, in whole seconds, at most what a client may be told."""
        rate = self._faded(now)
        return RETRY_AFTER_MOST if rate * RETRY_AFTER_MOST <= waiting else math.ceil(waiting / rate)

    def _faded(self, now: float) -> float:
        return self._rate * math.exp((self._at - now) / _MEMORY)


@dataclass(slots=True)
class _Held:
    """What one tenant has waiting."""

    requests: int = 0
    bytes: int = 0


@dataclass(frozen=True, slots=True)
class _Place:
    """One request's place in the queue."""

    tenant: str
    size: int
    since: float


class Admission(Generic[R]):
    """The places of one pool's queue."""

    def __init__(self, settings: QueueSettings) -> None:
        self.settings = settings
        self.bytes = 0
        self._places: OrderedDict[R, _Place] = OrderedDict()
        self._held: dict[str, _Held] = {}
        self._drain = DrainRate()

    @property
    def waiting(self) -> int:
        """How many requests wait."""
        return len(self._places)

    def enter(self, now: float, tenant: str, request: R, size: int) -> None:
        """Give a request of `size` bytes a place.

        Raises:
            QueueFull: the tenant, or the pool, has as much waiting as it may.
        """
        bounds, mine = self.settings, self.settings.per_tenant
        held = self._held.get(tenant) or _Held()
        if held.requests >= mine.max_requests or held.bytes + size > mine.max_bytes:
            raise QueueFull(
                f"{held.requests} requests of yours wait already, as many as may. Send fewer at once, or retry later.",
                retry_after=self._drain.seconds(now, held.requests),
            )
        if self.waiting >= bounds.max_requests or self.bytes + size > bounds.max_bytes:
            raise QueueFull(
                "The queue of this pool is full. Retry later.", retry_after=self._drain.seconds(now, self.waiting)
            )
        self._places[request] = _Place(tenant, size, now)
        self._held[tenant] = held
        held.requests += 1
        held.bytes += size
        self.bytes += size

    def leave(self, request: R) -> float:
        """Free a request's place; returns since when it waited."""
        place = self._places.pop(request)
        self.bytes -= place.size
        held = self._held[place.tenant]
        held.requests -= 1
        held.bytes -= place.size
        if not held.requests:
            del self._held[place.tenant]
        return place.since

    def dispatched(self, now: float, request: R) -> float:
        """Free the place of a request that got a slot; returns for how many seconds it waited."""
        self._drain.note(now)
        return now - self.leave(request)

    def expired(self, now: float) -> list[R]:
        """The requests that have waited for as long as they may, oldest first; they keep their places."""
        late = []
        for request, place in self._places.items():
            if now < place.since + self.settings.timeout:
                break
            late.append(request)
        return late

    def next_expiry(self) -> float | None:
        """When the oldest request will have waited for as long as it may; None if nothing waits."""
        for place in self._places.values():
            return place.since + self.settings.timeout
        return None

    def retry_after(self, now: float) -> int:
        """Seconds after which what waits now will be gone."""
        return self._drain.seconds(now, self.waiting)
