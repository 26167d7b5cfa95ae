"""How long requests wait in a fluid server, which serves all tenants at once, by weight: what isolation is judged by.

There is no moment of dispatch in a fluid, so a request's wait is what it takes longer than it would if it were alone.
Time goes from one arrival or end of a request to the next; an event costs O(T) in T tenants.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

_NOTHING: Final = 1e-9
"""Cost that is left of a request by rounding only."""


class Work(NamedTuple):
    """One request: when it arrives, in seconds, whose it is, and its cost."""

    arrival: float
    tenant: str
    cost: float


def fluid_waits(work: Iterable[Work], weights: Mapping[str, int], rate: float) -> dict[str, list[float]]:
    """The waits of each tenant's requests, in order of arrival, at so much cost per second.

    Args:
        work: the requests in order of arrival.
        weights: the weights of all tenants.
        rate: the cost that is served in a second.
    """
    queues: dict[str, deque[tuple[Work, float]]] = {tenant: deque() for tenant in weights}
    waits: dict[str, list[float]] = {tenant: [] for tenant in weights}
    coming, now = deque(work), 0.0
    while coming or any(queues.values()):
        backlogged = [tenant for tenant, queue in queues.items() if queue]
        total = sum(weights[tenant] for tenant in backlogged)
        rates = {tenant: rate * weights[tenant] / total for tenant in backlogged}
        ends = [now + queues[tenant][0][1] / rates[tenant] for tenant in backlogged]
        until = min([*ends, *([coming[0].arrival] if coming else [])])
        for tenant in backlogged:
            request, left = queues[tenant].popleft()
            left -= rates[tenant] * (until - now)
            if left > _NOTHING:
                queues[tenant].appendleft((request, left))
            else:
                waits[tenant].append(until - request.arrival - request.cost / rate)
        now = until
        while coming and coming[0].arrival <= now:
            request = coming.popleft()
            queues[request.tenant].append((request, request.cost))
    return waits
