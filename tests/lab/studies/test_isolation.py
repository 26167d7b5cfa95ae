"""The study of isolation: its page is made from its figures, and what it says of them is so."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import msgspec
import pytest

from fairpool_lab import traces
from fairpool_lab.cli import main
from fairpool_lab.studies import isolation
from fairpool_lab.studies.isolation import FLUID, IN_ORDER, ORDERS, PATTERNS, POOLS, SFQ, VICTIM, Study, within

STUDIES = Path(__file__).parents[3] / "docs" / "studies"
PUBLISHED = msgspec.json.decode((STUDIES / "isolation.json").read_bytes(), type=Study)
CASES = [(pool.title, pattern.title) for pool in POOLS for pattern in PATTERNS]


class TestThePage:
    def test_it_is_what_its_figures_make(self):
        assert (STUDIES / "isolation.md").read_text(encoding="utf-8") == isolation.page(PUBLISHED)

    def test_they_are_of_every_case_in_every_order(self):
        assert Counter((each.pool, each.pattern) for each in PUBLISHED.figures) == Counter(
            dict.fromkeys(CASES, len(ORDERS) + 1)
        )

    @pytest.mark.parametrize("case", CASES, ids=" / ".join)
    def test_the_goal_is_met_as_it_says(self, case):
        in_order, fluid = (PUBLISHED.of(*case, order) for order in (IN_ORDER.title, FLUID))
        for order in ORDERS:
            if order.policy == "sfq":
                assert within(PUBLISHED.of(*case, order.title), in_order, fluid)
        assert not within(in_order, in_order, fluid)

    @pytest.mark.parametrize("case", CASES, ids=" / ".join)
    def test_what_it_says_of_the_others_is_so(self, case):
        sfq, vtc, fluid = (PUBLISHED.of(*case, order) for order in (SFQ.title, "VTC", FLUID))
        assert 1 / 2 < vtc.wait_p99 / sfq.wait_p99 < 2
        assert 1 / 2 < fluid.wait_p99 / sfq.wait_p99 < 2


class TestTheDemand:
    @pytest.mark.parametrize("pattern", PATTERNS, ids=lambda pattern: pattern.title)
    def test_all_ask_for_half_more_than_there_is_and_the_victim_for_a_fifth_of_its_share(self, pattern):
        sizes = [(100, 50)]
        pool = POOLS[0]
        asked = Counter[str]()
        for seed in range(40):
            for ask in isolation.demand(pool, pattern, sizes, seed):
                asked[ask.tenant] += 1
        served = 40 * isolation.SERVICE_TIMES
        assert asked.total() / served == pytest.approx(1.5, rel=0.05)
        assert asked[VICTIM] / served == pytest.approx(0.2 / 3, rel=0.1)


class TestInShort:
    @pytest.fixture(scope="class")
    @staticmethod
    def found():
        pool = msgspec.structs.replace(POOLS[0], seeds=2)
        return isolation.study(traces.read(traces.EXCERPT), pools=[pool], patterns=PATTERNS[:2])

    def test_sfq_isolates_and_order_of_arrival_does_not(self, found):
        for pattern in PATTERNS[:2]:
            of = {order: found.of(POOLS[0].title, pattern.title, order) for order in (SFQ.title, IN_ORDER.title, FLUID)}
            assert within(of[SFQ.title], of[IN_ORDER.title], of[FLUID])
            assert not within(of[IN_ORDER.title], of[IN_ORDER.title], of[FLUID])

    def test_any_figures_make_a_page(self, found):
        assert isolation.page(found).count("| yes |") == 2


class TestTheCommand:
    def test_it_writes_the_page_and_its_figures(self, tmp_path, monkeypatch):
        monkeypatch.setattr(isolation, "study", lambda trace, walk: PUBLISHED)
        assert main(["lab", "study", "isolation", "--trace", str(traces.EXCERPT), "--out", str(tmp_path)]) == 0
        for name in ("isolation.md", "isolation.json"):
            assert (tmp_path / name).read_bytes() == (STUDIES / name).read_bytes()
