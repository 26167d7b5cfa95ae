"""Schedulers that disobey one rule each are told from SFQ by the lab's own measures, in a simulated pool.

In each scenario SFQ keeps its bound and gives everybody what it is entitled to, and one rule broken shows.
"""

from __future__ import annotations

import pytest
from support import sfq_broken
from support.controls import control
from support.sfq_oracle import Oracle

from fairpool_lab.measures import gap
from fairpool_lab.measures.shares import shares
from fairpool_lab.policies import POLICIES, PolicyFactory
from fairpool_lab.simulation import ESTIMATORS, Ask, Clients, FixedService, Run, Scenario, simulate

TOKENS_PER_SECOND = 1000


def scenario(*clients: Clients, asks: tuple[Ask, ...] = (), slots: int = 1) -> Scenario:
    """A pool that serves a thousand tokens a second in all its slots together, and knows the costs."""
    return Scenario(
        lambda: FixedService(TOKENS_PER_SECOND / slots, lambda used: used.input + 2 * used.output),
        asks,
        clients,
        slots=slots,
        estimator=ESTIMATORS["oracle"].make,
    )


def greatest_gap(run: Run) -> float:
    """The worst gap, as a part of its bound."""
    worst = gap.measure(run.log.events).worst
    return 0.0 if worst is None else worst.ratio


def share_error(run: Run) -> float:
    """The greatest difference of shares while all still wait."""
    return shares(run.log, until=END).greatest_difference


END = 120.0

LARGE, SMALL = (998, 1), (98, 1)


def closed(tenant: str, count: int, size: tuple[int, int], begin: float = 0.0, leaves_after: float | None = None):
    return Clients(tenant, count, (size,), begin, END, leaves_after=leaves_after)


def at_once(at: float, tenant: str, count: int, size: tuple[int, int]) -> tuple[Ask, ...]:
    return tuple(Ask(at, tenant, *size) for _ in range(count))


SEVERAL_SLOTS = scenario(closed("a", 16, LARGE), closed("b", 16, SMALL), slots=8)
COMES_LATER = scenario(closed("a", 8, SMALL), closed("b", 8, SMALL, begin=60.0))
LEAVES_AT_ONCE = scenario(closed("a", 16, SMALL), closed("b", 16, SMALL, leaves_after=0.75), slots=8)
ONE_AT_A_TIME = scenario(closed("b", 1, LARGE), asks=at_once(0.0, "a", 1500, SMALL))
AFTER_A_PAUSE = scenario(
    asks=at_once(0.0, "a", 1, (49_998, 1)) + at_once(70.0, "b", 600, SMALL) + at_once(70.0, "a", 600, SMALL)
)

CASES = {
    "charge on completion": (sfq_broken.ChargeOnCompletion, SEVERAL_SLOTS, greatest_gap, 1.0),
    "least served first": (sfq_broken.LeastServedFirst, COMES_LATER, greatest_gap, 1.0),
    "refund on failure": (sfq_broken.RefundOnFailure, LEAVES_AT_ONCE, greatest_gap, 1.0),
    "reset on return": (sfq_broken.ResetOnReturn, ONE_AT_A_TIME, share_error, 0.02),
    "no idle reset": (sfq_broken.NoIdleReset, AFTER_A_PAUSE, share_error, 0.02),
}
"""What is broken, where it shows, by which measure, and how much of that is still fair."""


def measured(factory: PolicyFactory, case: str) -> float:
    _, where, measure, _ = CASES[case]
    return measure(simulate(where, factory))


@pytest.mark.parametrize("case", CASES)
def test_a_rule_that_is_broken_shows_and_sfq_shows_nothing(case):
    broken, *_, fair = CASES[case]
    assert measured(POLICIES["sfq"].factory, case) <= fair
    assert measured(control(Oracle), case) == measured(POLICIES["sfq"].factory, case)
    assert measured(control(broken), case) > 1.5 * fair
