"""The study of weights: its page is made from its figures, and what it says of them is so."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from fairpool_lab import traces
from fairpool_lab.cli import main
from fairpool_lab.studies import weights
from fairpool_lab.studies.weights import CASES, ORDERS, POOLS, Pool, Study

STUDIES = Path(__file__).parents[3] / "docs" / "studies"
PUBLISHED = msgspec.json.decode((STUDIES / "weights.json").read_bytes(), type=Study)
THEORY, GPU = POOLS
KNOWN, ESTIMATED = (order.title for order in ORDERS[:2])
BY_NUMBER = {"stride", "round robin", "arrival order"}
LIGHT = "1:100"


def off(found: Study, pool: Pool, order: str) -> dict[str, float]:
    return {each.case: each.off for each in found.figures if (each.pool, each.order) == (pool.engine, order)}


class TestThePage:
    def test_it_is_what_its_figures_make(self):
        assert (STUDIES / "weights.md").read_text(encoding="utf-8") == weights.page(PUBLISHED)

    def test_they_are_of_every_case_in_every_order(self):
        parts = [(pool.engine, case.title, order.title) for pool in POOLS for case in CASES for order in pool.orders]
        assert [(each.pool, each.case, each.order) for each in PUBLISHED.figures] == parts

    def test_with_known_costs_shares_are_off_by_less_than_one_in_a_hundred(self):
        assert max(off(PUBLISHED, THEORY, KNOWN).values()) < 0.01

    def test_what_it_says_of_the_light_tenant_is_so(self):
        for order in ("SFQ, estimates", "WFQ, costs known", "VTC"):
            figure = next(
                each
                for each in PUBLISHED.figures
                if (each.pool, each.case, each.order) == (THEORY.engine, LIGHT, order)
            )
            assert figure.off > 0.01
            assert figure.error < 0.001

    def test_what_it_says_of_orders_that_count_requests_is_so(self):
        for order in BY_NUMBER:
            assert min(off(PUBLISHED, THEORY, order).values()) > 0.5

    def test_what_it_says_of_slots_is_so(self):
        assert min(each.taken for each in PUBLISHED.figures) > 0.9999


class TestInShort:
    @pytest.fixture(scope="class")
    @staticmethod
    def found():
        orders = tuple(order for order in ORDERS if order.title in {KNOWN, "round robin"})
        return weights.study(traces.read(traces.EXCERPT), pools=[Pool("fixed:250", 4, 600.0, orders)])

    def test_sfq_gives_shares_by_weight_and_round_robin_does_not(self, found):
        assert max(each.error for each in found.figures if each.order == KNOWN) < 0.01
        assert min(each.error for each in found.figures if each.order == "round robin") > 0.1

    def test_no_slot_is_left_free(self, found):
        assert min(each.taken for each in found.figures) == 1


class TestTheCommand:
    def test_it_writes_the_page_and_its_figures(self, tmp_path, monkeypatch):
        monkeypatch.setattr(weights, "study", lambda trace, walk: PUBLISHED)
        assert main(["lab", "study", "weights", "--trace", str(traces.EXCERPT), "--out", str(tmp_path)]) == 0
        for name in ("weights.md", "weights.json"):
            assert (tmp_path / name).read_bytes() == (STUDIES / name).read_bytes()
