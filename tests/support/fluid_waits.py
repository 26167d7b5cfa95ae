"""How long requests wait in a fluid server, which serves all tenants at once, by weight: the best that a wait can be.

A request's wait is what it takes longer than alone, for there is no moment of dispatch in a fluid. Brute force: time
goes from one arrival or end of a request to the next.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence

from fairpool_lab.simulation import Ask


def fluid_waits(
    asks: Sequence[Ask], weights: Mapping[str, int], cost: Callable[[Ask], float], rate: float
) -> dict[str, list[float]]:
    """The waits of each tenant's requests, in order of arrival, at so much cost per second."""
    queues: dict[str, deque[tuple[Ask, float]]] = {tenant: deque() for tenant in weights}
    waits: dict[str, list[float]] = {tenant: [] for tenant in weights}
    coming, now = deque(asks), 0.0
    while coming or any(queues.values()):
        backlogged = [tenant for tenant, queue in queues.items() if queue]
        total = sum(weights[tenant] for tenant in backlogged)
        rates = {tenant: rate * weights[tenant] / total for tenant in backlogged}
        ends = [now + queues[tenant][0][1] / rates[tenant] for tenant in backlogged]
        until = min([*ends, *([coming[0].arrival] if coming else [])])
        for tenant in backlogged:
            ask, left = queues[tenant].popleft()
            left -= rates[tenant] * (until - now)
            if left > 1e-9:
                queues[tenant].appendleft((ask, left))
            else:
                waits[tenant].append(until - ask.arrival - cost(ask) / rate)
        now = until
        while coming and coming[0].arrival <= now:
            ask = coming.popleft()
            queues[ask.tenant].append((ask, cost(ask)))
    return waits
