"""Studies' drawings: each is what the page's figures make, is shown by the page, and can be read by itself."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree as ET

import msgspec
import pytest

from fairpool_lab.report.chart import WIDTH, About, Axis
from fairpool_lab.studies import headline, isolation, price, price_page, truth, truth_page, weights
from fairpool_lab.studies.bound import figures as bound_figures
from fairpool_lab.studies.bound import page as bound_page
from fairpool_lab.studies.drawing import rows

STUDIES = Path(__file__).parents[3] / "docs" / "studies"
DRAWN = {
    "bound": (bound_page, bound_figures.Study),
    "headline": (headline, headline.Study),
    "isolation": (isolation, isolation.Study),
    "price": (price_page, price.Found),
    "truth": (truth_page, truth.Found),
    "weights": (weights, weights.Study),
}
SVG = "{http://www.w3.org/2000/svg}"


@pytest.mark.parametrize("name", DRAWN)
class TestPublished:
    def test_it_is_what_the_figures_make(self, name):
        study, figures = DRAWN[name]
        published = msgspec.json.decode((STUDIES / f"{name}.json").read_bytes(), type=figures)
        assert (STUDIES / study.DRAWING).read_text(encoding="utf-8") == study.drawing(published)

    def test_the_page_shows_it(self, name):
        study, _ = DRAWN[name]
        assert f"]({study.DRAWING})\n" in (STUDIES / f"{name}.md").read_text(encoding="utf-8")

    def test_it_is_small_and_needs_nothing_else(self, name):
        study, _ = DRAWN[name]
        text = (STUDIES / study.DRAWING).read_text(encoding="utf-8")
        assert len(text) < 16_000
        assert "prefers-color-scheme: dark" in text
        assert re.search(r'<svg [^>]*width="588" height="\d+"', text)
        assert not any(word in text for word in ("<script", "<image", "href", "url("))


@pytest.mark.parametrize("study", [headline, isolation, price_page, truth_page, weights])
def test_the_command_writes_it_beside_the_page(study, monkeypatch):
    name, figures = study.NAME, DRAWN[study.NAME][1]
    published = msgspec.json.decode((STUDIES / f"{name}.json").read_bytes(), type=figures)
    for module in (study, price, truth):
        monkeypatch.setattr(module, "study", lambda *_: published, raising=False)
    monkeypatch.setattr(headline, "check", lambda _: None)
    trace = type("Given", (), {"trace": ()})()
    assert study.LISTED.make([trace], None).drawings == {study.DRAWING: study.drawing(published)}


class TestRows:
    @pytest.fixture
    def svg(self):
        text = rows(
            About("some", "Some", "Of some."),
            Axis("%", 0.0, 100.0),
            ("one", "other"),
            [("a heading", ()), ("both", (20.0, 70.0)), ("one only", (50.0, None))],
            left=100,
        )
        return ET.fromstring(text)

    def test_every_row_and_every_mark_is_named(self, svg):
        assert {"a heading", "both", "one only", "one", "other"} <= {text.text for text in svg.iter(f"{SVG}text")}

    def test_marks_stand_where_their_values_are(self, svg):
        marks = [path for path in svg.iter(f"{SVG}path") if "fill" in path.get("style", "")]
        at = [tuple(float(number) for number in mark.get("d")[1:].split("m")[0].split()) for mark in marks]
        (first, second), (third,) = at[:2], at[2:3]
        assert len(marks) == 3 + len(("one", "other"))
        assert first[1] == second[1] < third[1]
        scale = (WIDTH - 14 - 100) / 100
        assert [x for x, _ in at[:3]] == pytest.approx([100 + value * scale for value in (20, 70, 50)], abs=0.1)

    def test_marks_differ_in_shape_and_not_in_colour_alone(self, svg):
        marks = [path.get("d") for path in svg.iter(f"{SVG}path") if "fill" in path.get("style", "")]
        assert marks[0].split("m", 1)[1] != marks[1].split("m", 1)[1]
