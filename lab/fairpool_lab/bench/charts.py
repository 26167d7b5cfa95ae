"""Charts of the page, as SVG files: for each subject a dot at the median of its rounds, on a line of their range.

Values lie far apart, so the axis is logarithmic, and a dot, unlike a bar, does not pretend to begin at 0. Text and
paper follow the reader's light or dark theme; the gateway is told apart by colour and by weight.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from fairpool_lab.bench.results import Spread
from fairpool_lab.bench.shown import written

WIDTH: Final = 720
_LEFT, _RIGHT, _TOP, _ROW, _BOTTOM = 120, 90, 46, 26, 30
_STYLE: Final = (
    "svg { --ink: #1f2328; --grid: #d9dee4; --paper: #ffffff; --others: #57606a; --ours: #0072B2; }"
    "@media (prefers-color-scheme: dark) { svg { --ink: #e6edf3; --grid: #30363d; --paper: #0d1117; --others: #9198a1;"
    " --ours: #56B4E9; } }"
    "text { fill: var(--ink); font: 13px 'DejaVu Sans', Verdana, sans-serif; }"
    ".title, .ours text { font-weight: bold; } .grid { stroke: var(--grid); } .paper { fill: var(--paper); }"
    ".others line { stroke: var(--others); } .others circle { fill: var(--others); }"
    ".ours line { stroke: var(--ours); } .ours circle { fill: var(--ours); } .row line { stroke-width: 3; }"
)


@dataclass(frozen=True, slots=True)
class Dot:
    """One subject's value."""

    name: str
    over: Spread
    ours: bool


def chart(title: str, dots: Sequence[Dot]) -> str:
    """One chart as a whole file."""
    low, high = _decades(dots)
    height = _TOP + _ROW * len(dots) + _BOTTOM
    svg = Element("svg", xmlns="http://www.w3.org/2000/svg", viewBox=f"0 0 {WIDTH} {height}", role="img")
    SubElement(svg, "title").text = title
    said = (f"{dot.name}: {written(dot.over.median)}" for dot in dots)
    SubElement(svg, "desc").text = f"Median of the rounds. {'; '.join(said)}."
    SubElement(svg, "style").text = _STYLE
    SubElement(svg, "rect", {"class": "paper", "width": str(WIDTH), "height": str(height)})
    _text(svg, title, 12, 22, class_="title")

    def across(value: float) -> float:
        part = (math.log10(max(value, 10**low)) - low) / (high - low)
        return _LEFT + part * (WIDTH - _LEFT - _RIGHT)

    for decade in range(low, high + 1):
        at = across(10.0**decade)
        _line(svg, at, _TOP - 8, at, height - _BOTTOM, class_="grid")
        _text(svg, f"{10.0**decade:,.10g}", at, height - 10, anchor="middle")
    for number, dot in enumerate(dots):
        middle = _TOP + _ROW * (number + 0.5)
        row = SubElement(svg, "g", {"class": f"row {'ours' if dot.ours else 'others'}"})
        _text(row, dot.name, _LEFT - 12, middle + 4, anchor="end")
        _line(row, across(dot.over.least), middle, across(dot.over.greatest), middle)
        place = {"cx": f"{across(dot.over.median):.1f}", "cy": f"{middle:.1f}", "r": "5.5"}
        SubElement(row, "circle", place)
        _text(row, written(dot.over.median), across(dot.over.greatest) + 12, middle + 4)
    indent(svg, "")
    return tostring(svg, encoding="unicode") + "\n"


def _decades(dots: Sequence[Dot]) -> tuple[int, int]:
    """The powers of ten around all values, two at least."""
    values = [value for dot in dots for value in (dot.over.least, dot.over.greatest) if value > 0] or [1.0]
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    return low, max(high, low + 1)


def _line(parent: Element, x1: float, y1: float, x2: float, y2: float, class_: str = "") -> None:
    ends = {name: f"{value:.1f}" for name, value in (("x1", x1), ("y1", y1), ("x2", x2), ("y2", y2))}
    SubElement(parent, "line", ends | ({"class": class_} if class_ else {}))


def _text(parent: Element, text: str, x: float, y: float, *, anchor: str = "start", class_: str = "") -> None:
    place = {"x": f"{x:.1f}", "y": f"{y:.1f}", "text-anchor": anchor} | ({"class": class_} if class_ else {})
    SubElement(parent, "text", place).text = text
