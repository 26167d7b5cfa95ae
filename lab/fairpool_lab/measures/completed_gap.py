"""The gap in work that was completed: how far behind its charges what tenants really got may lag, with several slots.

Charges are made at dispatch and their gap is bounded by two requests (`gap`). What is completed comes later: with D
slots, up to D requests of one tenant may have been on their way when an interval began, and D of another when it ends.
So, where costs are estimated truly, over every interval in which i and j both stay backlogged

    C_i - C_j <= (D + 1) (c_i/w_i + c_j/w_j)

(DESIGN §4), `C` being the true cost over weight of what was completed in it, `c/w` the greatest that the tenant ever
completed. The bound grows with the slots: a reason to have few beyond what keeps engines full. Each cost counts at the
weight of its dispatch; all numbers are units, and exact.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from fairpool_gateway.cost import Used
from fairpool_gateway.decision_log import Arrive, Complete, Dispatch, Remove
from fairpool_lab.decisions import Log


@dataclass(frozen=True, slots=True)
class CompletedGap:
    """The most that `ahead` completed more than `behind` while both stayed backlogged, and its bound, in units."""

    ahead: str
    behind: str
    gap: int
    bound: int

    @property
    def ratio(self) -> float:
        """The gap over its bound, which is positive: `ahead` completed something."""
        return self.gap / self.bound


def measure(log: Log, *, slots: int, cost: Callable[[Used], int]) -> tuple[CompletedGap, ...]:
    """The greatest gap of each ordered pair of which the first got ahead; the one closest to its bound comes first.

    Args:
        log: what was decided.
        slots: how many requests the endpoints could have outstanding, all together.
        cost: the true cost of what a request used.
    """
    meter = _Meter(log.header.q, cost)
    for event in log.events:
        match event:
            case Arrive(tenant=tenant):
                meter.waits(tenant, 1)
            case Dispatch(request=request, tenant=tenant, weight=weight):
                meter.weights[request] = weight
                meter.waits(tenant, -1)
            case Remove(tenant=tenant):
                meter.waits(tenant, -1)
            case Complete(tenant=tenant, request=request, used=Used() as used) if request in meter.weights:
                meter.completed(tenant, used, meter.weights.pop(request))
    greatest = meter.greatest
    found = (
        CompletedGap(ahead, behind, gap, (slots + 1) * (greatest[ahead] + greatest.get(behind, 0)))
        for (ahead, behind), gap in meter.most.items()
        if gap > 0
    )
    return tuple(sorted(found, key=lambda gap: (-gap.ratio, gap.ahead, gap.behind)))


class _Meter:
    """Who is backlogged, what each completed, and for each pair where in this joint period its lead was least."""

    def __init__(self, q: int, cost: Callable[[Used], int]) -> None:
        self._q = q
        self._cost = cost
        self._waiting: dict[str, int] = {}
        self._totals: dict[str, int] = {}
        self._floors: dict[tuple[str, str], int] = {}
        self.weights: dict[str, int] = {}
        self.greatest: dict[str, int] = {}
        self.most: dict[tuple[str, str], int] = {}

    def waits(self, tenant: str, more: int) -> None:
        """So many more requests of the tenant wait."""
        before = self._waiting.get(tenant, 0)
        if before + more == 0:
            del self._waiting[tenant]
            return
        if not before:
            for other in self._waiting:
                lead = self._totals.get(tenant, 0) - self._totals.get(other, 0)
                self._floors[tenant, other], self._floors[other, tenant] = lead, -lead
        self._waiting[tenant] = before + more

    def completed(self, tenant: str, used: Used, weight: int) -> None:
        """A request of the tenant was answered, having been dispatched at this weight."""
        units = -(-self._cost(used) * self._q // weight)
        total = self._totals[tenant] = self._totals.get(tenant, 0) + units
        self.greatest[tenant] = max(units, self.greatest.get(tenant, 0))
        if tenant not in self._waiting:
            return
        for other in self._waiting:
            if other != tenant:
                lead = total - self._totals.get(other, 0)
                self.most[tenant, other] = max(lead - self._floors[tenant, other], self.most.get((tenant, other), 0))
                self._floors[other, tenant] = min(-lead, self._floors[other, tenant])
