"""The study of calibration: its page is made from its figures, and what it says of them is so."""

from __future__ import annotations

from pathlib import Path
from statistics import mean

import msgspec
import pytest

from fairpool_gateway.cost import CostModel, Shape, Used
from fairpool_lab import traces
from fairpool_lab.policies import POLICIES
from fairpool_lab.studies import Given, calibration, calibration_page
from fairpool_lab.studies.calibration import Found, limited
from fairpool_lab.studies.foretelling import WAYS, AverageAt, RatioOfAll
from fairpool_lab.studies.gaming import TRICKS

STUDIES = Path(__file__).parents[3] / "docs" / "studies"
PUBLISHED = msgspec.json.decode((STUDIES / "calibration.json").read_bytes(), type=Found)

DEFAULT, CARRYING = "TenantAverage", "TenantAverage, carry"
OF_TENANTS = (DEFAULT, "TenantAverage, rate 0.1", "TenantAverage, rate 0.5", "MaxTokensRatio, per tenant")
CANCELLING = ("cancelled", "mixed, the long cancelled")


def off(way, slots=64):
    return mean(each.how.share_error for each in PUBLISHED.foretold if (each.how.estimator, each.slots) == (way, slots))


def gain(trick, order="sfq", way=DEFAULT):
    (found,) = (each.gain for each in PUBLISHED.gains if (each.order, each.way, each.trick) == (order, way, trick))
    return found


class TestThePage:
    def test_it_is_what_its_figures_make(self):
        assert (STUDIES / "calibration.md").read_text(encoding="utf-8") == calibration_page.page(PUBLISHED)

    def test_they_are_of_every_way_order_and_trick(self):
        assert {each.how.estimator for each in PUBLISHED.foretold} == {way.name for way in WAYS}
        assert {each.order for each in PUBLISHED.gains} == set(POLICIES)
        assert {each.trick for each in PUBLISHED.gains} == {trick.name for trick in TRICKS}
        assert {each.slots for each in PUBLISHED.foretold} == set(calibration.SLOTS)

    def test_what_it_says_of_shares_is_so(self):
        for far in ("constant", "MaxTokensRatio, pool-wide"):
            assert off(far) > 2 * max(off(way) for way in OF_TENANTS)
        assert off("TenantAverage, rate 0.1") <= off(DEFAULT)
        assert off("MaxTokensRatio") < off(DEFAULT)
        assert off(CARRYING) <= 0.6 * off(DEFAULT)
        assert off("MaxTokensRatio, carry") < off("MaxTokensRatio")

    @pytest.mark.parametrize("trick", ["split", "padded", "leave and return", "one at a time", "cancel and resubmit"])
    def test_what_gains_nothing_in_fair_order_gains_nothing(self, trick):
        assert gain(trick) < 0.02

    def test_cancelling_what_runs_pays_without_carry_and_not_with_it(self):
        for trick in CANCELLING:
            assert gain(trick) > 0.9
            assert all(gain(trick, way=way) < 0.02 for way in (CARRYING, "MaxTokensRatio, carry"))
        assert gain("cancelled", way="MaxTokensRatio") < 0.02 < gain(CANCELLING[1], way="MaxTokensRatio")

    def test_changing_by_turns_pays_by_what_is_learned_of_each_tenant(self):
        assert all(gain("mixed by turns", way=way) > 0.03 for way in (*OF_TENANTS, "MaxTokensRatio"))
        assert gain("mixed by turns", way="TenantAverage, rate 0.5") == max(
            gain("mixed by turns", way=way) for way in OF_TENANTS
        )
        assert gain("mixed by turns", way=CARRYING) < 0.02

    def test_what_it_says_of_other_orders_is_so(self):
        assert all(gain("padded", order) > 1 for order in ("round-robin", "stride", "rpm"))
        assert all(gain(trick, "vtc") > 0.7 for trick in ("one at a time", "cancel and resubmit"))
        assert all(gain("1,000 identities", order) > 2.9 for order in POLICIES)
        assert gain("a million", way="MaxTokensRatio") < -0.99
        assert sorted(PUBLISHED.strangers.values()) == list(PUBLISHED.strangers.values())


class TestItsParts:
    def test_tenants_have_one_of_three_habits_and_a_limit_that_is_told_stands(self):
        rows = ("0,a,1,5,", "1,b,1,5,", "2,c,1,5,", "3,c,1,9000,", "4,a,1,5,77")
        trace = traces.parse(
            ["arrival_s,tenant,input_tokens,output_tokens,max_tokens\n", *(f"{row}\n" for row in rows)]
        )
        assert [request.max_tokens for request in limited(trace)] == [8, 64, 8192, 16384, 77]

    def test_an_average_moves_by_its_rate_once_there_are_many(self):
        average = AverageAt(CostModel(), rate=0.5)
        assert average.estimate("a", shape()) == 25 + 2 * 256
        for output in (10, 20, 30, 40):
            average.learn("a", shape(), Used(25, output))
        assert average.estimate("a", shape()) == 25 + 2 * round(((10 + 20) / 2 + 30) / 2 / 2 + 20)
        assert average.estimate("new", shape()) == average.estimate("a", shape())

    def test_a_ratio_is_of_the_tenant_or_of_all_together(self):
        for together, foretold in ((True, round(100 * 60 / 300)), (False, 10)):
            ratio = RatioOfAll(CostModel(), together=together)
            ratio.learn("a", shape(100), Used(25, 10))
            ratio.learn("b", shape(200), Used(25, 50))
            assert ratio.estimate("a", shape(100)) == 25 + 2 * foretold

    def test_any_figures_make_a_page(self):
        given = [Given("short.csv", traces.busiest(traces.read(traces.EXCERPT), 20))]
        found = calibration.study(given, slots=(2,), tricks=TRICKS[:1], lasts=4.0)
        assert "| short.csv | " in calibration_page.page(found)
        assert f"({found.requests:,} in all)" in calibration_page.page(found)


def shape(max_tokens=100):
    return Shape("m", False, 100, 0, 1, max_tokens, True)
