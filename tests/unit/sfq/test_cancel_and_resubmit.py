"""Cancelling and resubmitting whenever one waits alone, to have one's lead wiped, gains nothing (DESIGN §4, rule 3)."""

import pytest
from support import sfq_broken
from support.sfq_events import price
from support.slots import SlottedPool

from fairpool_gateway.sfq import Scheduler

TRICKSTER, HONEST = "a", "b"
"""In this order, so that the trickster wins ties."""

COST = {TRICKSTER: 100, HONEST: 10}
OUTSTANDING = {TRICKSTER: 8, HONEST: 2}


def share_of_the_trickster(scheduler, *, tricks=True):
    """Of all charges on one slot; both tenants keep a few requests outstanding and have the same weight."""
    pool = SlottedPool(scheduler, slots=1)

    def waiting(tenant):
        return [request for name, request in pool.history.queued if name == tenant]

    def fill(tenant):
        running = sum(decision.tenant == tenant for decision in pool.in_flight)
        for _ in range(OUTSTANDING[tenant] - running - len(waiting(tenant))):
            pool.arrive(tenant, COST[tenant])

    for _ in range(2000):
        fill(TRICKSTER)
        if tricks and not waiting(HONEST):
            for request in waiting(TRICKSTER):
                pool.remove(request)
            fill(TRICKSTER)
        fill(HONEST)
        pool.end(pool.in_flight[0])
    charged = pool.history.charged
    return charged[TRICKSTER] / sum(charged.values())


def test_the_product_gives_nothing_for_it():
    assert share_of_the_trickster(Scheduler(price)) == pytest.approx(0.5, abs=0.01)
    assert share_of_the_trickster(Scheduler(price), tricks=False) == pytest.approx(0.5, abs=0.01)


def test_a_reset_on_removal_pays_for_it():
    assert share_of_the_trickster(sfq_broken.ResetOnRemoval(price), tricks=False) == pytest.approx(0.5, abs=0.01)
    assert share_of_the_trickster(sfq_broken.ResetOnRemoval(price)) > 0.8
