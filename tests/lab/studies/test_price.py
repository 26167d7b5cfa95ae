"""The study of the price of order: its page is made from its figures, and what it says of them is so."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from fairpool_lab import traces
from fairpool_lab.policies import POLICIES
from fairpool_lab.studies import Given, price, price_page
from fairpool_lab.studies.price import ALL_ORDERS_AT, FAIR, IN_ORDER, Found

STUDIES = Path(__file__).parents[3] / "docs" / "studies"
PUBLISHED = msgspec.json.decode((STUDIES / "price.json").read_bytes(), type=Found)
FEW, ENOUGH, MANY = price.SLOTS


def both(trace, slots):
    return PUBLISHED.of(trace, slots, IN_ORDER), PUBLISHED.of(trace, slots, FAIR)


class TestThePage:
    def test_it_is_what_its_figures_make(self):
        assert (STUDIES / "price.md").read_text(encoding="utf-8") == price_page.page(PUBLISHED)

    def test_they_are_of_every_order(self):
        assert {each.order for each in PUBLISHED.figures} == set(POLICIES)

    @pytest.mark.parametrize("trace", PUBLISHED.requests)
    def test_what_it_says_of_order_and_slots_is_so(self, trace):
        for slots in price.SLOTS:
            arrival, fair = both(trace, slots)
            assert fair.tokens_per_second == pytest.approx(arrival.tokens_per_second, rel=0.025)
            assert fair.first_token_p50 <= arrival.first_token_p50
            assert fair.first_token_p99 >= arrival.first_token_p99
        arrival, fair = both(trace, FEW)
        assert fair.tenants_first_token < arrival.tenants_first_token / 2
        assert arrival.tokens_per_second < both(trace, ENOUGH)[0].tokens_per_second

    def test_no_slot_is_free_while_somebody_waits_but_where_rates_are_limited(self):
        free = {each.order for each in PUBLISHED.figures if each.free > 1e-9}
        assert free == {"rpm"}

    def test_where_nobody_waits_both_orders_are_the_same(self):
        alike = [both(trace, MANY) for trace in PUBLISHED.requests if not both(trace, MANY)[1].stops]
        assert len(alike) == len(PUBLISHED.requests) - 1
        assert all(arrival.tokens_per_second == fair.tokens_per_second for arrival, fair in alike)

    def test_what_it_says_of_caches_is_so(self):
        (cached,) = (trace for trace in PUBLISHED.requests if both(trace, ENOUGH)[0].cached)
        parts = [PUBLISHED.of(cached, ALL_ORDERS_AT, order).cached for order in (IN_ORDER, FAIR, "dlpm")]
        assert max(parts) < 0.05
        assert max(parts) - min(parts) < 0.005


class TestItsParts:
    def test_a_trace_is_played_so_fast_that_more_is_asked_for_than_there_is(self):
        trace = traces.busiest(traces.read(traces.EXCERPT), 20)
        asked = sum(request.tokens for request in trace) / (trace[-1].arrival - trace[0].arrival)
        fast = price.speed(trace)
        given = price.figure(Given("short.csv", trace), ALL_ORDERS_AT, IN_ORDER, 1000 * fast)
        assert fast * asked == pytest.approx(price.LOAD * given.tokens_per_second, rel=0.05)

    def test_any_figures_make_a_page(self):
        given = [Given("short.csv", traces.busiest(traces.read(traces.EXCERPT), 10))]
        found = price.study(given, slots=(ALL_ORDERS_AT,))
        assert {each.order for each in found.figures} == set(POLICIES)
        assert f"| short | {ALL_ORDERS_AT} | " in price_page.page(found)
