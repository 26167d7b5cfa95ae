"""The picture: one SVG for light and dark, whose lines and marks are told apart without their colours."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from xml.etree.ElementTree import Element, fromstring

import pytest
from support.contrast import contrast
from support.outcomes import WEIGHTS, in_miniature

from fairpool_lab.demo.outcome import outcome
from fairpool_lab.demo.picture import draw

SVG = "{http://www.w3.org/2000/svg}"
HREF = "{http://www.w3.org/1999/xlink}href"


@pytest.fixture(scope="module")
def text(tmp_path_factory) -> str:
    directory = tmp_path_factory.mktemp("picture")
    draw([in_miniature(order, directory) for order in ("arrival order", "fair")], directory / "picture.svg")
    return (directory / "picture.svg").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def svg(text) -> Element:
    return fromstring(text)


def read(path: Path) -> Element:
    return fromstring(path.read_text(encoding="utf-8"))


def axes(svg: Element) -> list[Element]:
    """The six charts, row by row."""
    return [group for group in svg.iter(f"{SVG}g") if re.fullmatch(r"axes_\d+", group.get("id", ""))]


def words(part: Element) -> list[str]:
    return [text for element in part.iter(f"{SVG}text") if (text := "".join(element.itertext()))]


def lines(chart: Element) -> Iterator[str]:
    """The style of each thick line of a chart."""
    for path in chart.iter(f"{SVG}path"):
        style = path.get("style", "")
        if path.get("clip-path") and "stroke-width: 2" in style:
            yield style


def marks(svg: Element, chart: Element) -> set[tuple[str, str]]:
    """The shapes of marks in a chart, ticks left out: the path of each and its colour."""
    shapes = {f"#{path.get('id')}": path for path in svg.iter(f"{SVG}path") if path.get("id")}
    found = set()
    for group in chart.iter(f"{SVG}g"):
        uses = group.findall(f"{SVG}use")
        if len(uses) > 3:
            shape = shapes[uses[0].get(HREF, "")]
            colour = re.search(r"stroke: ([^;]+)", group.get("style", "") + shape.get("style", ""))
            assert colour
            found.add((" ".join(re.findall("[A-Za-z]", shape.get("d", ""))), colour[1]))
    return found


def test_it_is_one_svg_with_a_title_for_those_who_do_not_see_it(svg):
    assert svg.tag == f"{SVG}svg"
    assert svg[0].tag == f"{SVG}title"
    assert "in arrival order and fair" in (svg[0].text or "")


def test_it_has_a_row_each_for_service_gaps_and_waits_in_both_orders(svg):
    assert len(axes(svg)) == 6
    titles = [next(word for word in words(chart) if ": " in word) for chart in axes(svg)]
    assert [title.split(": ")[0] for title in titles] == ["Arrival order", "Fair"] * 3
    assert [re.sub(r"\w+ of \d+", "N of M", title.split(": ")[1]) for title in titles[::2]] == [
        "service per weight",
        "N of M pairs beyond the bound",
        "waits",
    ]
    assert titles[3].startswith("Fair: none of ")


def test_text_is_text_and_every_tenant_is_named(svg):
    for chart in axes(svg)[4:]:
        assert set(WEIGHTS) <= set(words(chart))


def test_every_line_has_a_dash_of_its_own(svg):
    for chart in axes(svg)[:2]:
        dashes = [re.search(r"stroke-dasharray: ([\d., ]+)", style) for style in lines(chart)]
        named = [word for word in words(chart) if re.fullmatch(r"c\d\d, weight \d", word)]
        assert len(dashes) == len(named) == 6
        assert len({dash[1] if dash else "none" for dash in dashes}) == 6


def test_every_kind_of_mark_has_a_shape_of_its_own(svg):
    beyond_and_within, _, *waits = (marks(svg, chart) for chart in axes(svg)[2:])
    for chart in (beyond_and_within, *waits):
        assert len(chart) == 2
        assert len({shape for shape, _ in chart}) == 2
        assert len({colour for _, colour in chart}) == 2


def test_ink_paper_and_grid_follow_the_readers_theme(text, svg):
    style = svg.find(f"{SVG}style")
    assert style is not None
    light, dark = (style.text or "").split("@media (prefers-color-scheme: dark)")
    for variable in ("ink", "paper", "grid", "quiet"):
        values = [re.search(rf"--{variable}: (#\w{{6}});", theme) for theme in (light, dark)]
        assert all(values)
        assert values[0][1] != values[1][1]
        assert f"var(--{variable}, " in text
    fixed = set(re.findall(r"#[0-9a-fA-F]{6}\b", re.sub(r"var\([^)]*\)|<style>.*?</style>", "", text)))
    assert {colour.upper() for colour in fixed} <= {"#0072B2", "#009E73", "#CC79A7", "#D55E00"}


def test_lines_and_marks_stand_out_from_light_and_dark_paper(text):
    style = re.search(r"<style>svg(.*)</style>", text)
    assert style
    light, dark = style[1].split("@media")
    for theme in (light, dark):
        colours = dict(re.findall(r"--(\w+): (#\w{6});", theme))
        paper = colours.pop("paper")
        del colours["grid"]
        for colour in (*colours.values(), "#0072B2", "#009E73", "#CC79A7", "#D55E00"):
            assert contrast(colour, paper) >= 2.9


def test_the_same_runs_give_the_same_picture(tmp_path, text):
    draw([in_miniature(order, tmp_path) for order in ("arrival order", "fair")], tmp_path / "again.svg")
    assert (tmp_path / "again.svg").read_text(encoding="utf-8") == text


def test_it_stays_small_enough_for_a_page(text):
    assert len(text) < 160_000


def test_runs_in_which_nothing_was_dispatched_or_nobody_competed_have_a_picture_too(tmp_path):
    idle = in_miniature("fair", tmp_path, slots=100)
    header = tmp_path / "header.jsonl"
    header.write_bytes(idle.path.read_bytes().splitlines(keepends=True)[0])
    draw([outcome("arrival order", header, [], 0), idle], tmp_path / "idle.svg")
    titles = [next(word for word in words(chart) if ": " in word) for chart in axes(read(tmp_path / "idle.svg"))]
    assert titles[2:4] == [
        "Arrival order: none of 0 pairs beyond the bound",
        "Fair: none of 0 pairs beyond the bound",
    ]
