"""CFS: what a tenant was seen to use, by weight, is counted as it is used; the least count goes next.

Source: Molnar, "CFS Scheduler", Linux kernel documentation (2007), §§1-3: the task with the least `vruntime` runs,
which grows by the time that it runs, divided by its weight; `min_vruntime` never decreases, follows the least vruntime
of all that can run, and is where a task that wakes is placed at least. The article describes it so (§6.1, §6.3).

Read for a pool: the time that is used are the tokens that engines report, as costs; a request is not preempted, so one
that was dispatched counts on to its end. A tenant can run while it waits or has requests in flight, and wakes from
neither. Chosen: no credit for sleepers and no debit for the new, which the kernel has had in several forms, and which
the article leaves out as details. An input token counts when it is computed, none when it came out of a cache.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable
from typing import TypeVar, Unpack

from fairpool_gateway.sfq import Decision, Q
from fairpool_lab.policies.least import Least
from fairpool_lab.policies.queues import Pool, TenantQueues

R = TypeVar("R", bound=Hashable)


class CompletelyFair(TenantQueues[R]):
    """Virtual run times, in units of 1/Q token per weight; `v` is `min_vruntime`."""

    def __init__(self, price: Callable[[R], int], **pool: Unpack[Pool[R]]) -> None:
        super().__init__(price, **pool)
        self._vruntimes = defaultdict[str, int](int)
        self._in_flight: dict[R, str] = {}
        self._running = Counter[str]()
        self._waiting = Least()
        self._runnable = Least()

    def choose(self) -> str:
        """The waiting tenant with the least vruntime."""
        return self._waiting.first()[1]

    def joined(self, tenant: str) -> None:
        """Who wakes is placed at `min_vruntime` at least."""
        if tenant not in self._runnable:
            self._vruntimes[tenant] = max(self._vruntimes[tenant], self.v)
        self._waiting.put(tenant, self._vruntimes[tenant])
        self._runnable.put(tenant, self._vruntimes[tenant])

    def took(self, decision: Decision[R]) -> None:
        """Nothing is counted yet."""
        self._in_flight[decision.request] = decision.tenant
        self._running[decision.tenant] += 1

    def left(self, tenant: str) -> None:
        """It waits no more; perhaps it runs."""
        self._waiting.discard(tenant)
        self._sleep(tenant)

    def progressed(self, request: R, input_tokens: int, output_tokens: int) -> None:
        """Count what was used."""
        tenant = self._in_flight[request]
        used = self.sight.cost(input_tokens, output_tokens) * Q // self.weight(tenant)
        self._vruntimes[tenant] += used
        self._runnable.put(tenant, self._vruntimes[tenant])
        if tenant in self._waiting:
            self._waiting.put(tenant, self._vruntimes[tenant])
        self.v = max(self.v, self._runnable.first()[0])

    def finished(self, request: R) -> None:
        """Who neither waits nor runs sleeps."""
        tenant = self._in_flight.pop(request)
        self._running[tenant] -= 1
        self._sleep(tenant)

    def meter(self, tenant: str) -> int:
        """The vruntime."""
        return self._vruntimes[tenant]

    def _sleep(self, tenant: str) -> None:
        if tenant not in self._waiting and not self._running[tenant]:
            self._runnable.discard(tenant)
            if self._runnable:
                self.v = max(self.v, self._runnable.first()[0])
