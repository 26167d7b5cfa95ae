"""What order may cost, in short: hardly any throughput, no slot that is free while somebody waits, nobody's patience.

The control of the first two is an order that limits rates, of the last the order of arrival.
"""

from __future__ import annotations

from functools import cache

import pytest

from fairpool_lab import traces
from fairpool_lab.studies import Given, price

TRACE = Given("short", traces.busiest(traces.read(traces.EXCERPT), 60))
SLOTS = 4
FAST = 8.0


@cache
def played(order):
    return price.figure(TRACE, SLOTS, order, FAST)


def keeps_throughput(order):
    return played(order).tokens_per_second >= 0.95 * played(price.IN_ORDER).tokens_per_second


def leaves_no_slot_free(order):
    return played(order).free < 1e-9


def lets_the_median_tenant_wait_a_third_less(order):
    return played(order).tenants_first_token <= played(price.IN_ORDER).tenants_first_token * 2 / 3


@pytest.mark.parametrize("promise", [keeps_throughput, leaves_no_slot_free, lets_the_median_tenant_wait_a_third_less])
def test_fair_order_keeps_it(promise):
    assert promise(price.FAIR)


def test_an_order_that_limits_rates_costs_throughput_and_leaves_slots_free():
    assert not keeps_throughput("rpm")
    assert not leaves_no_slot_free("rpm")


def test_in_order_of_arrival_all_wait_alike():
    assert played(price.IN_ORDER).stops
    assert not lets_the_median_tenant_wait_a_third_less(price.IN_ORDER)
