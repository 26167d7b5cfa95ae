"""Carry: what a tenant's earlier charges were off by goes into its next ones, so that errors of estimates cancel out.

Estimates alone let a tenant gain by whatever they do not foresee: one that cancels what runs teaches them nothing, and
is charged by what others use. So each tenant has a debt, in tokens. At a dispatch the charge is the estimate plus the
debt, at least 1 and at most `estimate + max(estimate, M)`, `M` being the most that a request of the tenant was ever
seen to use, whole or cut short; the debt becomes what was not charged of it. At its end a request adds what it used
beyond its estimate, or takes away what it used less; one that was cut short takes nothing away, for nobody knows how
long it would have been. When a free slot finds nobody backlogged all debts are forgotten, and who rejoins behind
virtual time loses its credit: idleness is not saved up.

What always holds, whatever the errors. A request is still charged once, at its dispatch, and at least 1, so every bound
of the order stands, with these charges in it. As long as nothing is forgotten, a tenant's charges are what its ended
requests used and those in flight are estimated to use, less its debt. While at most `D` of its requests are in flight
and none is estimated to use, or uses, more than `m`, the debt stays within `-D * m` and `D * m`. So in the long run
nothing is off.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator


class Carry:
    """The debts of one pool's tenants, in whole tokens; below 0 they are credit. All but `debts` takes constant time.

    Args:
        max_tenants: of how many tenants something is kept; beyond it, who was dispatched least recently is forgotten.
    """

    def __init__(self, *, max_tenants: int = 10_000) -> None:
        self._max_tenants = max_tenants
        self._greatest: OrderedDict[str, int] = OrderedDict()
        self._debts: dict[str, int] = {}

    def price(self, tenant: str, estimate: int) -> int:
        """What a request that is estimated to cost so much would be charged for now; nothing is written down."""
        greatest = self._greatest.get(tenant, 0)
        return min(max(1, estimate + self._debts.get(tenant, 0)), estimate + max(estimate, greatest))

    def dispatched(self, tenant: str, estimate: int, charged: int) -> None:
        """A request was charged for so much: its tenant owes that much less."""
        self._greatest.setdefault(tenant, 0)
        self._greatest.move_to_end(tenant)
        if len(self._greatest) > self._max_tenants:
            self.forget(next(iter(self._greatest)))
        self._add(tenant, estimate - charged)

    def completed(self, tenant: str, estimate: int, used: int) -> None:
        """A request came to its end and used so much; like any, it cost at least 1."""
        self._ended(tenant, max(1, used), max(1, used) - estimate)

    def cut_short(self, tenant: str, estimate: int, seen: int) -> None:
        """A request was cancelled, or failed, when it was seen to have used so much."""
        self._ended(tenant, seen, max(0, seen - estimate))

    def rejoined(self, tenant: str) -> None:
        """A tenant became backlogged with its meter behind virtual time: its credit is gone, its debt is not."""
        if self._debts.get(tenant, 0) < 0:
            del self._debts[tenant]

    def begin_anew(self) -> None:
        """A free slot found nobody backlogged: nobody owes anything (§2.5)."""
        self._debts.clear()

    def forget(self, tenant: str) -> None:
        """A tenant has left. What still ends of it counts for nothing."""
        self._greatest.pop(tenant, None)
        self._debts.pop(tenant, None)

    def debts(self) -> Iterator[tuple[str, int]]:
        """Who owes how much, or has it to its credit, in no particular order."""
        return iter(self._debts.items())

    def _ended(self, tenant: str, used: int, off: int) -> None:
        if tenant in self._greatest:
            self._greatest[tenant] = max(self._greatest[tenant], used)
            self._add(tenant, off)

    def _add(self, tenant: str, off: int) -> None:
        if debt := self._debts.get(tenant, 0) + off:
            self._debts[tenant] = debt
        else:
            self._debts.pop(tenant, None)
