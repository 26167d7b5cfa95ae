"""The report's page: whole without a network, readable without seeing a chart, and safe whatever tenants are called."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest
from support import lab_pool
from support.contrast import contrast

from fairpool_lab import decisions, report, traces
from fairpool_lab.errors import OutputInvalid
from fairpool_lab.policies.arrival_order import ArrivalOrder
from fairpool_lab.report import Curve, Distances, PolicyRun, Report, TenantResult, measured

SECTIONS = ("service", "gaps", "waits", "shares", "utilisation")
EMPTY = PolicyRun("none", "", 0.0, 0.0, (), Distances(Curve(), Curve(), 0, 0), Curve())
HOSTILE = """<script>alert("it's")</script><!--&lt;"""


class Reader(HTMLParser):
    """Elements in the order in which they begin, each with its attributes and the words right inside it."""

    VOID = frozenset({"meta", "link", "img", "br", "input"})

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str], list[str]]] = []
        self._open: list[int] = []
        self.feed(page)
        assert self._open == []

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs), []))
        if tag not in self.VOID:
            self._open.append(len(self.found) - 1)

    def handle_endtag(self, tag):
        assert self.found[self._open.pop()][0] == tag

    def handle_data(self, data):
        if self._open:
            self.found[self._open[-1]][2].append(data)

    def named(self, tag: str) -> list[tuple[dict[str, str], str]]:
        return [(attributes, "".join(words)) for found, attributes, words in self.found if found == tag]


@pytest.fixture(scope="module")
def shown() -> Report:
    trace = traces.busiest(traces.read(traces.EXCERPT), 60)
    weights = traces.weights(trace)
    runs = [
        measured(name, decisions.read(lab_pool.run(trace, weights=weights, **order)), slots=4, source=f"of {name}")
        for name, order in (("arrival order", {"ordering": ArrivalOrder}), ("SFQ", {}))
    ]
    return Report("Two orders", (("trace", "an excerpt"), ("seed", "7")), tuple(runs))


@pytest.fixture(scope="module")
def page(shown) -> str:
    return report.page(shown)


@pytest.fixture(scope="module")
def read(page) -> Reader:
    return Reader(page)


class TestWhole:
    def test_nothing_is_fetched_from_anywhere(self, page, read):
        assert "://" not in page
        assert {attributes["href"][0] for attributes, _ in read.named("a")} == {"#"}
        assert not any("src" in attributes for _, attributes, _ in read.found)
        assert {tag for tag, _, _ in read.found} & {"script", "link", "img", "iframe", "object"} == set()
        assert not re.search(r"@import|url\(", page)
        policy = next(a for a, _ in read.named("meta") if a.get("http-equiv") == "Content-Security-Policy")
        assert policy["content"] == "default-src 'none'; style-src 'unsafe-inline'"

    def test_every_link_leads_to_a_section(self, read):
        ids = {attributes["id"] for _, attributes, _ in read.found if "id" in attributes}
        assert {attributes["href"][1:] for attributes, _ in read.named("a")} <= ids
        assert set(SECTIONS) <= ids

    def test_a_phone_shows_it_as_wide_as_it_is(self, read):
        assert "width=device-width, initial-scale=1" in [a.get("content") for a, _ in read.named("meta")]

    def test_the_same_report_is_the_same_page(self, shown, page):
        assert report.page(shown) == page

    def test_it_is_written_to_a_file_or_the_reason_is_said(self, tmp_path, shown, page):
        report.write(tmp_path / "report.html", shown)
        assert (tmp_path / "report.html").read_text(encoding="utf-8") == page
        with pytest.raises(OutputInvalid, match=r"none/report\.html cannot be written: No such file"):
            report.write(tmp_path / "none" / "report.html", shown)

    def test_a_longer_run_with_more_requests_makes_no_longer_page(self, shown, page):
        longer = [
            replace(run, tenants=tuple(replace(tenant, waits=tenant.waits * 100) for tenant in run.tenants))
            for run in shown.runs
        ]
        assert len(report.page(replace(shown, runs=tuple(longer)))) < 1.02 * len(page) < 400_000


class TestWords:
    def test_every_chart_has_a_title_a_description_and_a_caption(self, read):
        charts = [attributes for attributes, _ in read.named("svg") if attributes.get("role") == "img"]
        assert len(charts) == len(read.named("figcaption")) == 2 * len(SECTIONS)
        words = {attributes["id"]: said for _, attributes, said in read.found if "id" in attributes}
        for chart in charts:
            title, description = chart["aria-labelledby"].split()
            assert words[title]
            assert words[description][0].endswith(".")
        assert all(caption for _, caption in read.named("figcaption"))

    def test_all_that_is_no_chart_and_has_no_words_is_hidden_from_readers_of_words(self, read):
        assert all(attributes.get("role") or attributes.get("aria-hidden") for attributes, _ in read.named("svg"))

    def test_policies_stand_side_by_side_in_every_section(self, read):
        assert [words for _, words in read.named("h3")] == ["arrival order", "SFQ"] * len(SECTIONS)

    def test_figures_and_every_tenant_are_tables_with_their_headings(self, shown, read):
        headings = [words for attributes, words in read.named("th") if attributes["scope"] == "row"]
        tenants = [tenant.tenant for run in shown.runs for tenant in run.tenants]
        assert headings == [*(name for name, _ in shown.runs[0].figures), *tenants]
        assert "334 of 362" not in headings
        assert all(words in [cell for _, cell in read.named("td")] for _, words in shown.runs[1].figures)

    def test_the_verdict_of_the_bound_is_in_words(self, read):
        first, second = (words for _, words in read.named("figcaption")[2:4])
        assert re.match(r"\d+ of \d+ ordered pairs of tenants got beyond the bound\.", first)
        assert second.startswith("None of ")

    def test_what_was_run_is_said_at_the_top(self, read):
        assert read.named("h1") == [({}, "Two orders")]
        assert [words for _, words in read.named("dd")] == ["an excerpt", "7"]


class TestWhateverItIsGiven:
    def test_a_name_is_never_markup(self, shown):
        run = shown.runs[0]
        tenants = (replace(run.tenants[0], tenant=HOSTILE), *run.tenants[1:])
        hostile = replace(shown, title=HOSTILE, runs=(replace(run, policy=HOSTILE, source=HOSTILE, tenants=tenants),))
        found = Reader(report.page(hostile))
        assert found.named("script") == []
        assert found.named("h1") == [({}, HOSTILE)]
        assert HOSTILE in [words for _, words in found.named("th")]

    def test_a_run_in_which_nothing_happened_has_a_page_too(self):
        found = Reader(report.page(Report("Nothing", (), (EMPTY,))))
        assert len(found.named("figcaption")) == len(SECTIONS)
        assert not any("nan" in attributes.get("d", "") for attributes, _ in found.named("path"))

    def test_hundreds_of_tenants_are_drawn_in_part_and_listed_in_full(self):
        tenants = tuple(
            TenantResult(
                f"t{number}", 1, 1, 1 / 500, 1 / 500, Curve((0.0, 9.0), (0.0, float(number))), (float(number),)
            )
            for number in range(500)
        )
        found = Reader(report.page(Report("Many", (), (replace(EMPTY, seconds=9.0, until=9.0, tenants=tenants),))))
        lines = [a for a, _ in found.named("path") if "line" in a.get("class", "") and "d" in a]
        assert len(lines) < 100
        assert {f"t{number}" for number in range(500)} <= {words for _, words in found.named("th")}
        assert any("Drawn are the 30 of 500 tenants" in words for _, words in found.named("figcaption"))

    def test_a_gap_beyond_its_bound_is_marked_and_one_within_is_not(self):
        def marks(gap: float) -> int:
            curve, bound = Curve((1.0, 2.0), (5.0, gap)), Curve((1.0, 2.0), (10.0, 10.0))
            run = replace(EMPTY, seconds=3.0, distances=Distances(curve, bound, 2, int(gap > 10)))
            found = Reader(report.page(Report("Gaps", (), (run,))))
            return sum(attributes.get("class") == "beyond" for attributes, _ in found.named("circle"))

        in_the_legend = marks(10.0)
        assert marks(11.0) == in_the_legend + 1


class TestColours:
    def test_ink_and_lines_stand_out_from_light_and_dark_paper(self, page):
        themes = re.findall(r":root \{ (?:color-scheme: light dark; )?(--paper.*?) \}", page)
        assert len(themes) == 2
        for theme in themes:
            colours = dict(re.findall(r"--([\w-]+): (#\w{6});", theme))
            assert contrast(colours["ink"], colours["paper"]) > 7
            assert contrast(colours["faint"], colours["paper"]) > 4.5
            lines = [colour for name, colour in colours.items() if name.startswith("tenant-")]
            assert len(set(lines)) == 6
            assert all(contrast(colour, colours["paper"]) > 3 for colour in lines)

    def test_every_shown_tenant_has_a_dash_of_its_own_too(self, page):
        dashes = re.findall(r"\.tenant-\d \{ stroke: [^;]+; stroke-dasharray: ([^;]+); \}", page)
        assert len(set(dashes)) == 6
