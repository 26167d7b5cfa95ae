"""Start-time Fair Queueing: the product's own scheduler, as one policy among the others.

Source: Goyal, Vin, Cheng, "Start-time Fair Queueing", SIGCOMM 1996, §2, as the article reads it (§2). It is not a copy:
whatever the lab finds is found of the class that serves in production.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import TypeVar

from fairpool_gateway.sfq import Scheduler
from fairpool_lab.policies.policy import Sight, Unmoved

R = TypeVar("R", bound=Hashable)


class StartTimeFairQueueing(Unmoved[R], Scheduler[R]):
    """`sfq.Scheduler`, deaf to all that happens after a dispatch."""

    def __init__(
        self,
        price: Callable[[R], int],
        *,
        weights: Mapping[str, int] | None = None,
        default_weight: int = 100,
        max_tenants: int = 10_000,
        sight: Sight[R] | None = None,  # noqa: ARG002 - every policy is made with it
    ) -> None:
        super().__init__(price, weights=weights, default_weight=default_weight, max_tenants=max_tenants)
