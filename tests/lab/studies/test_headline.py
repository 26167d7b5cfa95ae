"""The study of the VTC paper's headline: its page is made from its figures, and what it says of them is so."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from fairpool_lab import traces
from fairpool_lab.cli import main
from fairpool_lab.studies import headline
from fairpool_lab.studies.headline import AT_PAPERS, Figure, Study

STUDIES = Path(__file__).parents[3] / "docs" / "studies"
PUBLISHED = msgspec.json.decode((STUDIES / "headline.json").read_bytes(), type=Study)


def of(title: str, slots: int = AT_PAPERS, found: Study = PUBLISHED) -> Figure:
    return next(figure for figure in found.figures if (figure.title, figure.slots) == (title, slots))


FIRST, LEAST, VTC, ORACLE, SFQ, KNOWING = (scheduler.title for scheduler in headline.SCHEDULERS)


class TestThePage:
    def test_it_is_what_its_figures_make(self):
        assert (STUDIES / "headline.md").read_text(encoding="utf-8") == headline.page(PUBLISHED)

    def test_they_are_of_the_whole_trace(self):
        assert (PUBLISHED.requests, PUBLISHED.tenants) == (1_500, 27)
        assert {figure.slots for figure in PUBLISHED.figures} == set(headline.SLOTS)

    def test_what_it_says_of_schedulers_is_so(self):
        assert abs(of(LEAST).greatest - of(FIRST).greatest) < 0.05 * of(FIRST).greatest
        assert of(LEAST).mean < of(FIRST).mean
        assert max(of(VTC).greatest, of(SFQ).greatest) < 0.5 * of(FIRST).greatest
        assert of(VTC).greatest < of(SFQ).greatest
        assert of(ORACLE).greatest > of(VTC).greatest
        assert of(ORACLE).mean > of(VTC).mean
        assert of(KNOWING).greatest < of(SFQ).greatest
        assert of(KNOWING).mean < of(SFQ).mean
        within = {figure.title for figure in PUBLISHED.figures if not figure.exceeded}
        assert within == {SFQ, KNOWING}

    def test_what_it_says_of_slots_is_so(self):
        few, enough, many = headline.SLOTS
        assert of(SFQ, few).tokens_per_second < 0.8 * of(SFQ, enough).tokens_per_second
        assert of(FIRST, few).greatest > of(FIRST, enough).greatest
        for fair in (VTC, ORACLE, SFQ, KNOWING):
            assert of(fair, many).greatest > 1.5 * of(fair, enough).greatest


class TestInShort:
    @pytest.fixture(scope="class")
    @staticmethod
    def found():
        return headline.study(traces.busiest(traces.read(traces.EXCERPT), 120), slots=(AT_PAPERS,))

    def test_sfq_keeps_its_bound_and_all_others_fail_to(self, found):
        exceeded = {figure.title: figure.exceeded > 0 for figure in found.figures}
        assert exceeded == {FIRST: True, LEAST: True, VTC: True, ORACLE: True, SFQ: False, KNOWING: False}

    def test_who_is_served_in_order_of_arrival_is_served_least_alike(self, found):
        assert of(FIRST, found=found).mean == max(figure.mean for figure in found.figures)

    def test_any_figures_make_a_page(self, found):
        assert f"| SFQ |  | {of(SFQ, found=found).greatest:.0f} |" in headline.page(found)


class TestTheCommand:
    @pytest.fixture
    def trace(self, tmp_path):
        """As many requests of as many tenants as the published one has, but small ones."""
        path = tmp_path / "trace.csv"
        rows = "".join(f"{number * 0.4:.1f},c{number % 27},10,2\n" for number in range(1_500))
        path.write_text(f"arrival_s,client,input_tokens,output_tokens\n{rows}", encoding="utf-8")
        return str(path)

    def test_it_writes_the_page_and_its_figures(self, trace, tmp_path, capsys):
        assert main(["lab", "study", "headline", "--trace", trace, "--out", str(tmp_path)]) == 0
        figures = msgspec.json.decode((tmp_path / "headline.json").read_bytes(), type=Study)
        assert (tmp_path / "headline.md").read_text(encoding="utf-8") == headline.page(figures)
        assert capsys.readouterr().out == f"The page is {tmp_path / 'headline.md'}.\n"

    def test_a_place_that_is_none_is_said_before_anything_runs(self, trace, tmp_path, capsys):
        assert main(["lab", "study", "headline", "--trace", trace, "--out", str(tmp_path / "none")]) == 2
        assert f"{tmp_path / 'none'} is no directory" in capsys.readouterr().err

    def test_another_trace_is_refused_for_the_words_are_not_about_it(self, capsys):
        assert main(["lab", "study", "headline", "--trace", str(traces.EXCERPT)]) == 2
        assert "--trace: this study is of the 1,500 requests of 27 clients in " in capsys.readouterr().err
