"""The study of the simulator: its page is made from its figures, and what it says of them is so."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from fairpool_lab import traces
from fairpool_lab.cli import main
from fairpool_lab.demo.scenario import ARRIVAL_ORDER, FAIR
from fairpool_lab.studies import truth, truth_page
from fairpool_lab.studies.truth import SIMULATED, Found, apart, real

STUDIES = Path(__file__).parents[3] / "docs" / "studies"
PUBLISHED = msgspec.json.decode((STUDIES / "truth.json").read_bytes(), type=Found)

FIRST, SECOND = real(1), real(2)


class TestThePage:
    def test_it_is_what_its_figures_make(self):
        assert (STUDIES / "truth.md").read_text(encoding="utf-8") == truth_page.page(PUBLISHED)

    @pytest.mark.parametrize("order", truth.ORDERS)
    def test_a_simulated_run_is_as_close_to_a_real_one_as_another_real_one(self, order):
        first, second, simulated = (PUBLISHED.of(order, side) for side in (FIRST, SECOND, SIMULATED))
        between = apart(first, second)
        for beside in (apart(first, simulated), apart(second, simulated)):
            assert beside.share <= 1.1 * between.share
            assert beside.wait <= 1.2 * between.wait
            assert abs(beside.throughput) <= 0.01

    @pytest.mark.parametrize("side", [FIRST, SECOND, SIMULATED])
    def test_all_agree_on_what_an_order_does(self, side):
        arrival, fair = PUBLISHED.of(ARRIVAL_ORDER, side), PUBLISHED.of(FAIR, side)
        assert fair.gap_over_bound <= 1 < arrival.gap_over_bound
        assert fair.share_error < arrival.share_error / 2
        assert fair.wait_p50 < arrival.wait_p50
        assert fair.wait_p99 > arrival.wait_p99


class TestItsParts:
    def test_how_far_runs_are_apart_is_told_by_shares_requests_and_tokens(self):
        def side(share, waits, tokens):
            tenants = (truth.Tenant("a", 1, share, 0.0, 0.0), truth.Tenant("b", 1, 1 - share, 0.0, 0.0))
            return truth.Side(FAIR, FIRST, tenants, {"a": waits, "b": (5.0,)}, tokens, 1.0, 0.0, 0.0, 0.0, 0.0)

        far = apart(side(0.5, (1.0, 2.0), 100.0), side(0.6, (1.5, 4.0), 90.0))
        assert (far.share, far.wait, far.throughput) == pytest.approx((0.1, 0.5, -0.1))

    def test_a_trace_of_strangers_is_refused_before_anything_runs(self, tmp_path, capsys):
        path = tmp_path / "trace.csv"
        path.write_text("arrival_s,tenant,input_tokens,output_tokens\n0,nobody,1,1\n", encoding="utf-8")
        assert main(["lab", "study", "truth", "--trace", str(path), "--out", str(tmp_path)]) == 2
        assert "the demonstration's pool has no tenant nobody" in capsys.readouterr().err

    def test_it_is_of_the_trace_that_the_demonstration_plays(self):
        excerpt = traces.read(traces.EXCERPT)
        assert len(traces.busiest(excerpt, truth.SECONDS)) == len(excerpt) == PUBLISHED.requests
