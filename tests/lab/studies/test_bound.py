"""The study of the bound: its page is made from its figures, what it says of them is so, and adversaries are some."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from fairpool_lab import traces
from fairpool_lab.cli import main
from fairpool_lab.measures import completed_gap
from fairpool_lab.policies import POLICIES
from fairpool_lab.simulation import End, simulate
from fairpool_lab.studies import Given
from fairpool_lab.studies.bound import adversaries, held_back, measured, page
from fairpool_lab.studies.bound.figures import Study
from fairpool_lab.studies.study import DEALT

STUDIES = Path(__file__).parents[3] / "docs" / "studies"
PUBLISHED = msgspec.json.decode((STUDIES / "bound.json").read_bytes(), type=Study)
FEW, *_, MANY = PUBLISHED.completed
EXCERPT = traces.read(traces.EXCERPT)


class TestThePage:
    def test_it_is_what_its_figures_make(self):
        assert (STUDIES / "bound.md").read_text(encoding="utf-8") == page.page(PUBLISHED)
        assert (STUDIES / page.DRAWING).read_text(encoding="utf-8") == page.drawing(PUBLISHED)

    def test_they_are_of_all_that_is_tried(self):
        assert sum(each.requests for each in PUBLISHED.traces) == 386_638
        assert [each.name for each in PUBLISHED.adversaries] == [each.name for each in adversaries.BY_HAND]
        assert tuple(each.slots for each in PUBLISHED.completed) == measured.MANY_SLOTS

    def test_what_it_says_of_traces_is_so(self):
        for each in PUBLISHED.traces:
            assert each.fair.exceeded == each.impatient.exceeded == 0
            assert each.in_order.exceeded > 0.7 * each.in_order.pairs
        assert max(each.fair.ratio for each in PUBLISHED.traces) == 1

    def test_what_it_says_of_adversaries_is_so(self):
        tried = [*(each.verdicts for each in PUBLISHED.adversaries), PUBLISHED.drawn]
        beyond = {policy for verdicts in tried for policy, verdict in verdicts.items() if verdict.exceeded}
        assert beyond == set(measured.COMPARED) - {measured.SFQ}

    def test_what_it_says_of_completed_work_is_so(self):
        for each in PUBLISHED.completed:
            assert each.traces["oracle"].exceeded == 0
            assert each.traces["oracle"].ratio < 0.6
        held_back = [each.held_back for each in PUBLISHED.completed]
        assert held_back == sorted(held_back)
        assert 0.99 < MANY.held_back <= 1
        for estimator in ("TenantAverage", "MaxTokensRatio"):
            assert FEW.traces[estimator].exceeded
            assert not any(each.traces[estimator].exceeded for each in PUBLISHED.completed if each.slots >= 4)


class TestRatios:
    @pytest.mark.parametrize(
        ("ratio", "said"), [(0.0, "0.00"), (0.994, "0.99"), (0.9999, "0.99"), (1.0, "1.00"), (1.0001, "1.01")]
    )
    def test_none_is_rounded_to_the_bound_or_across_it(self, ratio, said):
        assert page.written(ratio) == said


class TestTheAdverseEngine:
    @pytest.mark.parametrize("slots", [1, 2, 8, 64])
    def test_it_comes_as_close_to_the_bound_as_was_reckoned(self, slots):
        run = simulate(held_back.scenario(slots), POLICIES["sfq"].factory)
        assert run.ended(End.COMPLETED) == len(run.requests)
        worst, *_ = completed_gap.measure(run.log, slots=slots, cost=adversaries.cost)
        assert (2 * slots - 1) / (2 * slots + 2) <= worst.ratio <= 1


class TestInShort:
    @pytest.fixture(scope="class")
    @staticmethod
    def found():
        tried = [each for each in adversaries.BY_HAND if each.name in {"tiny and huge", "weights turned about"}]
        return measured.study([Given("excerpt", EXCERPT)], by_hand=tried, drawn=5, slots=(1, 4))

    def test_sfq_keeps_the_bound_and_order_of_arrival_does_not(self, found):
        (on_trace,) = found.traces
        assert on_trace.fair.exceeded == on_trace.impatient.exceeded == 0 < on_trace.in_order.exceeded
        assert on_trace.left > 0
        assert found.drawn["sfq"].exceeded == 0 < found.drawn["arrival-order"].exceeded
        for each in found.adversaries:
            exceeded = {policy for policy, verdict in each.verdicts.items() if verdict.exceeded}
            assert exceeded == {"vtc", "lcf", "arrival-order"}

    def test_what_is_completed_keeps_it_where_costs_are_known(self, found):
        assert [each.traces["oracle"].exceeded for each in found.completed] == [0, 0]

    def test_any_figures_make_a_page(self, found):
        assert "| excerpt | " in page.page(found)
        assert page.drawing(found).startswith("<svg")

    def test_a_trace_that_names_no_tenants_is_dealt(self):
        nobodys = tuple(replace(request, tenant=traces.EVERYBODY) for request in EXCERPT)
        on_trace = measured.on_trace(Given("nobody's", nobodys))
        assert on_trace.dealt
        assert 10 < on_trace.tenants <= DEALT


class TestTheCommand:
    def test_it_writes_page_figures_and_drawing(self, tmp_path, monkeypatch):
        monkeypatch.setattr(measured, "study", lambda given, walk: PUBLISHED)
        assert main(["lab", "study", "bound", "--trace", str(traces.EXCERPT), "--out", str(tmp_path)]) == 0
        for name in ("bound.md", "bound.json", page.DRAWING):
            assert (tmp_path / name).read_bytes() == (STUDIES / name).read_bytes()
