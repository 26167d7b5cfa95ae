"""An engine that completes in the worst order there is, for the gap in completed work."""

from __future__ import annotations

import math
from heapq import heappop, heappush

from fairpool_lab.simulation import ESTIMATORS, Clients, Scenario, SimulatedRequest
from fairpool_lab.simulation.engines import Happened, Progress


class HeldBack:
    """All requests take a second, but those of one tenant it holds back until they have all of its slots.

    A second later it lets all of them go at once, and from then on holds back the other tenant's.

    Args:
        slots: how many requests it is given at once.
        tenants: whose requests are held back first, and whose then.
        until: when it holds nobody back any longer.
    """

    def __init__(self, slots: int, tenants: tuple[str, str], until: float) -> None:
        self._slots = slots
        self._held, self._others = tenants
        self._until = until
        self._kept: list[SimulatedRequest] = []
        self._ends: list[tuple[float, int, SimulatedRequest]] = []
        self._submitted = 0

    @property
    def due(self) -> float | None:
        """When the next request is finished."""
        if self._ends:
            return self._ends[0][0]
        return self._until if self._kept else None

    def submit(self, now: float, request: SimulatedRequest) -> None:
        """Serve it, or keep it back."""
        if request.tenant != self._held or now >= self._until:
            self._end(now + 1.0, request)
            return
        self._kept.append(request)
        if len(self._kept) == self._slots:
            self._let_go(now + 1.0)
            self._held, self._others = self._others, self._held

    def abort(self, request: SimulatedRequest) -> None:
        """Nobody leaves."""
        raise NotImplementedError

    def advance(self) -> Happened:
        """The next request is finished."""
        if not self._ends:
            self._let_go(self._until)
        _, _, request = heappop(self._ends)
        return Happened([Progress(request, request.input_tokens, 0, request.output_tokens)], [request])

    def cached(self, request: SimulatedRequest) -> int:  # noqa: ARG002 - every engine is asked
        """None: there is no cache."""
        return 0

    def _let_go(self, at: float) -> None:
        for request in self._kept:
            self._end(at, request)
        self._kept = []

    def _end(self, at: float, request: SimulatedRequest) -> None:
        self._submitted += 1
        heappush(self._ends, (at, self._submitted, request))


def scenario(slots: int) -> Scenario:
    """Two tenants who always wait, in front of that engine."""
    until = 30.0 + 4 * math.log2(slots + 1)
    return Scenario(
        lambda: HeldBack(slots, ("first", "second"), until),
        clients=tuple(Clients(tenant, 2 * slots + 2, [(98, 1)], until=until) for tenant in ("first", "second")),
        slots=slots,
        estimator=ESTIMATORS["oracle"].make,
    )
