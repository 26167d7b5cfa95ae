"""Schedulers and a pool that each disobey one rule, to show that a check would notice.

Each is what somebody could well have written. They derive from the oracle, where a rule is a line.
"""

from __future__ import annotations

import math
from fractions import Fraction

from support.sfq_events import Request
from support.sfq_oracle import Oracle
from support.slots import SlottedPool

from fairpool_gateway.sfq import Decision, Q


class ResetOnReturn(Oracle):
    """Who comes back starts at `v`, whatever it has taken (§2.4 warns of it)."""

    def join(self, tenant: str) -> None:
        self.tags[tenant] = self.v


class NoIdleReset(Oracle):
    """A free slot that finds nobody changes nothing (against §2.5)."""

    def reset(self) -> None:
        pass


class ResetOnRemoval(Oracle):
    """The competition also ends when a removal leaves nobody waiting: the article's words, taken literally."""

    def remove(self, tenant: str, request: Request) -> None:
        super().remove(tenant, request)
        if not self.backlogged:
            self.reset()


class LeastServedFirst(Oracle):
    """The least total so far goes first; idleness is saved up, for nobody is ever lifted to `v` (against §2.4)."""

    def join(self, tenant: str) -> None:
        self.tags.setdefault(tenant, 0)

    def take(self, tenant: str, start_tag: int, charge: int) -> None:
        self.v = max(self.v, start_tag)
        self.tags[tenant] += charge

    def reset(self) -> None:
        pass


class ChargeOnCompletion(Oracle):
    """Nothing is charged before the request has ended (against §5.1)."""

    def take(self, tenant: str, start_tag: int, charge: int) -> None:
        self.v = start_tag

    def reset(self) -> None:
        pass

    def ended(self, decision: Decision[Request], *, failed: bool) -> None:
        self.tags[decision.tenant] += decision.charge


class RefundOnFailure(Oracle):
    """A request that failed gives its charge back (against §5.1)."""

    def ended(self, decision: Decision[Request], *, failed: bool) -> None:
        if failed and decision.tenant in self.tags:
            self.tags[decision.tenant] = max(self.v, self.tags[decision.tenant] - decision.charge)


class RescaleOnReweigh(Oracle):
    """A new weight also stretches the lead that the old one left (against rule 4 of the design)."""

    def reweigh(self, tenant: str, weight: int | None) -> None:
        before = self.weight(tenant)
        super().reweigh(tenant, weight)
        if tenant in self.tags:
            lead = self.tags[tenant] - self.v
            self.tags[tenant] = self.v + math.ceil(Fraction(lead * before, self.weight(tenant)))


class WeightAtArrival(Oracle):
    """A request is charged by the weight that its tenant had when it arrived (against rule 4 of the design)."""

    def arrive(self, tenant: str, request: Request) -> str:
        self.weights[f"{request.number}"] = self.weight(tenant)
        return super().arrive(tenant, request)

    def weight_of(self, tenant: str, request: Request) -> int:
        return self.weight(f"{request.number}")


class FloatMeters(Oracle):
    """Meters as binary fractions: far from zero a small charge is rounded away (against rule 5 of the design)."""

    def take(self, tenant: str, start_tag: int, charge: int) -> None:
        super().take(tenant, start_tag, charge)
        self.tags[tenant] = int((start_tag / Q + charge / Q) * Q)


class RebaseWithoutTheIdle(Oracle):
    """A rebase that shifts only the meters of those who wait (against §7.2)."""

    def rebase(self) -> int:
        idle = {tenant: tag for tenant, tag in self.tags.items() if tenant not in self.backlogged}
        offset = super().rebase()
        self.tags |= idle
        return offset


class TiesInAnyOrder(Oracle):
    """Ties go to whom a set happens to yield first (against §7.3)."""

    def choose(self) -> str:
        return min(set(self.backlogged), key=self.tags.__getitem__)


class ArrivalOrder(Oracle):
    """Who came first goes first, across all tenants: no fairness at all."""

    def choose(self) -> str:
        return min(self.backlogged, key=lambda tenant: self.queues[tenant][0])


class OnePlacementPerEvent(SlottedPool):
    """A pool that asks once per event, however many slots are free (against §7.1)."""

    def place(self) -> None:
        if self.free:
            decision = self.history.dispatch()
            if decision is not None:
                self.in_flight.append(decision)
