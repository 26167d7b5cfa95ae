"""The studies' short forms: what their pages say of the product's order, on less, and broken by orders that are not it.

As in `test_promises`, a promise that no control breaks, or a control that breaks none, would prove nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import pytest
from support import sfq_broken
from support.controls import control

from fairpool_lab import traces
from fairpool_lab.policies import POLICIES, PolicyFactory
from fairpool_lab.simulation import Run, Scenario, simulate
from fairpool_lab.studies import isolation, weights
from fairpool_lab.studies.bound import adversaries, held_back, measured
from fairpool_lab.studies.order import Order

ORDERS: dict[str, PolicyFactory] = {
    "sfq": POLICIES["sfq"].factory,
    "arrival order": POLICIES["arrival-order"].factory,
    "round robin": POLICIES["round-robin"].factory,
    "least counter first": POLICIES["lcf"].factory,
    "charge on completion": control(sfq_broken.ChargeOnCompletion),
    "rescale on reweigh": control(sfq_broken.RescaleOnReweigh),
}


class Controlled(Order, frozen=True):
    """One of these, with costs that are known."""

    def run(self, scenario: Scenario) -> Run:
        return simulate(scenario, ORDERS[self.title])


TRACE = traces.read(traces.EXCERPT)
TRIED = [each for each in adversaries.BY_HAND if each.name not in {"huge beside tiny", "many identities"}]
SLOTS = (1, 4, 64)
SERVER = weights.Pool("fixed:250", 4, 1_200.0, ())
ONE_SLOT = isolation.Pool("one slot", "fixed:1000", 1, 1000.0, seeds=2)
SIZES = [(max(1, request.input_tokens), request.output_tokens) for request in TRACE]


def keeps_the_bound_whatever_is_tried(order: str) -> bool:
    """No charge takes a tenant beyond its bound, on any adversary."""
    runs = (simulate(each.scenario, ORDERS[order]) for each in TRIED)
    return not any(measured.dispatched(run).exceeded for run in runs)


def completes_within_its_bound(order: str) -> bool:
    """What is completed keeps to (D + 1) requests of each, on a real trace and behind an adverse engine."""
    for slots in SLOTS:
        real = measured.contended(TRACE, slots=slots, part=0.5, estimator="oracle").scenario()
        for scenario in (real, held_back.scenario(slots)):
            if measured.in_true_cost(simulate(scenario, ORDERS[order]), slots).exceeded:
                return False
    return True


def gives_shares_by_weight(order: str) -> bool:
    """While all wait, nobody's share is off by more than one part in a hundred, when weights change too."""
    under = Controlled(order, "", "oracle")
    runs = ((case, under.run(weights.scenario(TRACE, SERVER, case, under))) for case in weights.CASES)
    return all(weights.figure(SERVER, case, under, run).error <= 0.01 for case, run in runs)


def isolates_from_bursts(order: str) -> bool:
    """Who asks for little waits a fifth as long as in order of arrival, and three times as long as in a fluid."""

    def victim(order: str, pattern: isolation.Pattern) -> isolation.Figure:
        return isolation.played(ONE_SLOT, pattern, Controlled(order, "", "oracle"), SIZES)

    return all(
        isolation.within(
            victim(order, pattern),
            victim("arrival order", pattern),
            isolation.in_fluid(ONE_SLOT, pattern, SIZES),
        )
        for pattern in isolation.PATTERNS
    )


PROMISES: dict[str, Callable[[str], bool]] = {
    "bound": cache(keeps_the_bound_whatever_is_tried),
    "completed": cache(completes_within_its_bound),
    "shares": cache(gives_shares_by_weight),
    "bursts": cache(isolates_from_bursts),
}


BROKEN = {
    "arrival order": {"bound", "completed", "shares", "bursts"},
    "round robin": {"bound", "completed", "shares"},
    "least counter first": {"bound"},
    "charge on completion": {"bound"},
    "rescale on reweigh": {"bound"},
}
"""Which promises each control breaks."""


@pytest.mark.parametrize("promise", PROMISES)
def test_the_products_order_keeps_every_promise(promise):
    assert PROMISES[promise]("sfq")


@pytest.mark.parametrize("order", BROKEN)
def test_every_control_breaks_some(order):
    assert {promise for promise, kept in PROMISES.items() if not kept(order)} == BROKEN[order] != set()


def test_every_promise_is_broken_by_some_control():
    assert set.union(*BROKEN.values()) == set(PROMISES)
    assert BROKEN.keys() == ORDERS.keys() - {"sfq"}
