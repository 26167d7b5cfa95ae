"""SFQ with carry: what earlier charges of a tenant were off by is added to its next ones (DESIGN §5).

No gateway does it; the study of calibration asks whether it should. A request is still charged once, at its dispatch,
and for at least one token, so every bound of SFQ stands with these charges. A tenant has a debt, in tokens:

- at dispatch the charge is `estimate + debt`, at least 1 and at most `estimate + max(estimate, M)`; the debt becomes
  what was not charged of it. `M` is the most that a request of the tenant was ever seen to use, to its end or not;
- when a request is complete, `actual - estimate` is added; when its client left, only what it was seen to use beyond
  the estimate, for nobody knows how long it would have been;
- a free slot that finds nobody backlogged clears all debts, and a tenant that rejoins behind `v` loses what it was
  charged too much: idleness is not saved up.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import TypeVar

from fairpool_gateway.sfq import Decision, Scheduler
from fairpool_lab.policies.policy import Hearing, Sight

R = TypeVar("R", bound=Hashable)


class Carrying(Hearing[R], Scheduler[R]):
    """A `Policy`; the scheduler is the product's own, only its price is not."""

    def __init__(
        self,
        price: Callable[[R], int],
        *,
        weights: Mapping[str, int] | None = None,
        default_weight: int = 100,
        max_tenants: int = 10_000,
        sight: Sight[R] | None = None,
    ) -> None:
        super().__init__(self._with_debt, weights=weights, default_weight=default_weight, max_tenants=max_tenants)
        self._estimate = price
        self._sight: Sight[R] = Sight() if sight is None else sight
        self._debts: dict[str, int] = {}
        self._greatest: dict[str, int] = {}
        self._owners: dict[R, str] = {}
        self._estimates: dict[R, int] = {}
        self._generated: dict[R, int] = {}

    def arrive(self, tenant: str, request: R) -> str:
        """Append a request; who comes back behind `v` comes without credit."""
        known = self._tenants.get(tenant)
        if known is None or (not known.queue and known.meter < self.v):
            self._debts[tenant] = max(0, self._debts.get(tenant, 0))
        owner = self._owners[request] = super().arrive(tenant, request)
        return owner

    def remove(self, tenant: str, request: R) -> None:
        """Take a waiting request out; it was never charged."""
        super().remove(tenant, request)
        del self._owners[request]

    def dispatch(self) -> Decision[R] | None:
        """As SFQ; where nobody is backlogged all begin anew."""
        decision = super().dispatch()
        if decision is None:
            self._debts.clear()
        return decision

    def progressed(self, request: R, input_tokens: int, output_tokens: int) -> None:  # noqa: ARG002 - prompts are known
        """Count what is generated."""
        self._generated[request] += output_tokens

    def finished(self, request: R) -> None:
        """Owe what was not charged, or have it to one's credit."""
        tenant, generated = self._owners.pop(request), self._generated.pop(request)
        used = self._sight.cost(self._sight.input_tokens(request), generated)
        off = used - self._estimates.pop(request)
        if generated < self._sight.output_tokens(request):
            off = max(0, off)
        self._greatest[tenant] = max(used, self._greatest.get(tenant, 0))
        self._debts[tenant] = self._debts.get(tenant, 0) + off

    def _with_debt(self, request: R) -> int:
        """The charge, in tokens; asked once, at the dispatch."""
        tenant, estimate = self._owners[request], self._estimate(request)
        debt = self._debts.get(tenant, 0)
        most = estimate + max(estimate, self._greatest.get(tenant, 0))
        charged = min(max(1, estimate + debt), most)
        self._debts[tenant] = debt - (charged - estimate)
        self._estimates[request], self._generated[request] = estimate, 0
        return charged
