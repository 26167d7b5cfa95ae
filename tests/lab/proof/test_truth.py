"""In short, that the simulator tells the truth: a real run has the shares that were simulated, of its own order.

Half a minute of the trace goes through the real gateway and real engine processes. The controls are the other order,
and a simulated pool of half the engines.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from fairpool_lab import traces
from fairpool_lab.demo import scenario
from fairpool_lab.demo.scenario import ARRIVAL_ORDER, FAIR
from fairpool_lab.studies import truth
from fairpool_lab.studies.truth import apart

SCENARIO = replace(scenario.of_trace(traces.busiest(traces.read(traces.EXCERPT), 80)), compression=40.0, speed=5.0)


@pytest.fixture(scope="module")
def really():
    return {side.order: side for side in truth.really(SCENARIO, truth.real(1))}


@pytest.mark.parametrize(("order", "other"), [(FAIR, ARRIVAL_ORDER), (ARRIVAL_ORDER, FAIR)])
def test_a_real_run_has_the_shares_that_were_simulated_of_its_order_and_of_no_other(order, other, really):
    of_its_own, of_the_other = (apart(really[order], truth.simulated(SCENARIO, each)) for each in (order, other))
    assert of_its_own.share < of_the_other.share / 2
    assert of_its_own.wait < of_the_other.wait


def test_a_simulated_pool_of_half_the_engines_is_further_off(really):
    half = truth.simulated(replace(SCENARIO, engines=2), FAIR)
    assert apart(really[FAIR], truth.simulated(SCENARIO, FAIR)).wait < apart(really[FAIR], half).wait / 2
