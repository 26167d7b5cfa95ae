"""Ways to carry that each break one rule, to show that a check would notice."""

from __future__ import annotations

from fairpool_gateway.cost import Carry


class Unclipped(Carry):
    """The whole debt at once, and below nothing if it is credit."""

    def price(self, tenant: str, estimate: int) -> int:
        return estimate + self._debts.get(tenant, 0)


class ChargedAgain(Carry):
    """What was charged stays owed."""

    def dispatched(self, tenant: str, estimate: int, charged: int) -> None:
        super().dispatched(tenant, estimate, estimate)


class RefundForLeaving(Carry):
    """A request that is cut short is taken for one that came to its end."""

    def cut_short(self, tenant: str, estimate: int, seen: int) -> None:
        self.completed(tenant, estimate, seen)


class OnlyWhatIsWhole(Carry):
    """What cancelled requests used does not count for the most that is charged at once."""

    def cut_short(self, tenant: str, estimate: int, seen: int) -> None:
        greatest = self._greatest[tenant]
        super().cut_short(tenant, estimate, seen)
        self._greatest[tenant] = greatest
