"""What fair admission promises, each promise kept by the product's order and broken by some that are not fair.

The product's dispatcher runs all of them, on fake time. Costs are true, so nothing hides behind estimates. Whoever
weakens the order breaks one of these; and a promise that no control breaks, or a control that breaks none, would prove
nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from random import Random

import pytest
from support import sfq_broken
from support.controls import control

from fairpool_lab import traces
from fairpool_lab.comparison import engines, setup
from fairpool_lab.measures import gap
from fairpool_lab.measures.distribution import Distribution
from fairpool_lab.measures.fluid_waits import Work, fluid_waits
from fairpool_lab.measures.shares import shares
from fairpool_lab.measures.waits import waits
from fairpool_lab.policies import POLICIES, PolicyFactory
from fairpool_lab.simulation import ESTIMATORS, Ask, Clients, FixedService, Run, Scenario, simulate

RATE = 1000.0
ORACLE = ESTIMATORS["oracle"].make


def server():
    return FixedService(RATE, lambda used: used.input + 2 * used.output)


class IgnoresWeights(sfq_broken.Oracle):
    """Everybody is charged alike."""

    def weight(self, tenant: str) -> int:
        return 100


ORDERS: dict[str, PolicyFactory] = {
    "sfq": POLICIES["sfq"].factory,
    "arrival order": POLICIES["arrival-order"].factory,
    "round robin": POLICIES["round-robin"].factory,
    "least counter first": POLICIES["lcf"].factory,
    "reset on return": control(sfq_broken.ResetOnReturn),
    "charge on completion": control(sfq_broken.ChargeOnCompletion),
    "ignores weights": control(IgnoresWeights),
}

TRACE = traces.busiest(traces.read(traces.EXCERPT), 60)
REAL = setup.Setup(TRACE, engines.named("a10g"), 1, 25, traces.weights(TRACE), "oracle").scenario()
COMES_LATER = Scenario(
    server,
    clients=(
        Clients("a", 8, [(98, 1)], until=60.0),
        Clients("b", 8, [(98, 1)], begin=30.0, until=60.0),
        Clients("c", 8, [(400, 100)], until=60.0),
    ),
    slots=2,
    estimator=ORACLE,
)

WEIGHTS = {"one": 1, "two": 2, "four": 4}
CUT = 400.0
BACKLOGGED = Scenario(
    server,
    clients=tuple(
        Clients(tenant, 24, sizes, until=CUT + 1)
        for tenant, sizes in zip(WEIGHTS, ([(100, 50)], [(300, 10), (20, 90)], [(500, 150), (10, 5)]), strict=True)
    ),
    slots=4,
    weights=WEIGHTS,
    estimator=ORACLE,
    seed=7,
)
ONE_AT_A_TIME = Scenario(
    server,
    clients=(Clients("honest", 16, [(98, 1)], until=120.0), Clients("returns", 1, [(998, 1)], until=120.0)),
    slots=1,
    estimator=ORACLE,
)


def crowded(service_times: int) -> list[Ask]:
    """A victim that asks for a fifth of its share, and two who bring the total to one and a half of what there is."""
    chance, mean, asks = Random(11), 300, []
    for tenant, load in (("victim", 0.2 / 3), ("b", (1.5 - 0.2 / 3) / 2), ("c", (1.5 - 0.2 / 3) / 2)):
        now = 0.0
        while (now := now + chance.expovariate(load * RATE / mean)) < service_times * mean / RATE:
            asks.append(Ask(now, tenant, chance.randint(1, 199), chance.randint(1, 199)))
    return sorted(asks, key=lambda ask: ask.arrival)


CROWD = crowded(service_times=1000)
ALIKE = {"victim": 100, "b": 100, "c": 100}


@cache
def played(order: str, scenario: str) -> Run:
    where = {
        "real": REAL,
        "later": COMES_LATER,
        "backlogged": BACKLOGGED,
        "returning": ONE_AT_A_TIME,
        "crowd": Scenario(server, CROWD, slots=1, weights=ALIKE, estimator=ORACLE),
    }
    return simulate(where[scenario], ORDERS[order])


def keeps_the_bound(order: str) -> bool:
    """No tenant ever gets further ahead of another than the bound, on a real trace, and when one comes later."""
    return all(gap.measure(played(order, where).log.events).within_bound for where in ("real", "later"))


def gives_shares_by_weight(order: str) -> bool:
    """While all wait, each tenant's share of the work is off by at most one part in a hundred."""
    got = {each.tenant: each.received_share for each in shares(played(order, "backlogged").log, until=CUT).tenants}
    return all(abs(got[tenant] / (weight / 7) - 1) <= 0.01 for tenant, weight in WEIGHTS.items())


def rewards_no_return(order: str) -> bool:
    """Who sends large requests one at a time, so as to come back each time, gets no more than its share."""
    got = {each.tenant: each.received_share for each in shares(played(order, "returning").log, until=119.0).tenants}
    return got["returns"] <= 0.5 + 0.01


def isolates(order: str) -> bool:
    """Who asks for little waits a fifth as long as in order of arrival, and three times as long as in a fluid."""
    longest = waits(played(order, "crowd").log.events)["victim"].p99
    in_order = waits(played("arrival order", "crowd").log.events)["victim"].p99
    work = (Work(ask.arrival, ask.tenant, ask.input_tokens + 2 * ask.output_tokens) for ask in CROWD)
    fluid = fluid_waits(work, ALIKE, RATE)
    return longest <= in_order / 5 and longest <= 3 * Distribution.of(fluid["victim"]).p99


PROMISES: dict[str, Callable[[str], bool]] = {
    "bound": keeps_the_bound,
    "shares": gives_shares_by_weight,
    "return": rewards_no_return,
    "isolation": isolates,
}


@pytest.mark.parametrize("promise", PROMISES)
def test_the_products_order_keeps_every_promise(promise):
    assert PROMISES[promise]("sfq")


BROKEN = {
    "arrival order": {"bound", "shares", "isolation"},
    "round robin": {"bound", "shares", "return"},
    "least counter first": {"bound"},
    "reset on return": {"return"},
    "charge on completion": {"bound"},
    "ignores weights": {"shares"},
}
"""Which promises each control breaks."""


@pytest.mark.parametrize("order", BROKEN)
def test_every_control_breaks_some(order):
    assert {promise for promise, kept in PROMISES.items() if not kept(order)} == BROKEN[order] != set()


def test_every_promise_is_broken_by_some_control():
    assert set.union(*BROKEN.values()) == set(PROMISES)
    assert BROKEN.keys() == ORDERS.keys() - {"sfq"}


def test_nobody_is_ever_kept_waiting_beside_a_free_slot():
    run = played("sfq", "backlogged")
    assert sum(each.input + 2 * each.output for each in run.service if each.at <= CUT) == pytest.approx(
        4 * RATE * CUT, rel=0.01
    )
