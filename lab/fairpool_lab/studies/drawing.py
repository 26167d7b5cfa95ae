"""A study's drawings: charts of the report, each as a file of its own that needs nothing else, in either theme."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final
from xml.etree.ElementTree import indent, tostring

from fairpool_lab.report.chart import HEIGHT, WIDTH, About, Axis, Chart
from fairpool_lab.report.markup import element
from fairpool_lab.report.report import Curve
from fairpool_lab.report.style import style

_ROW: Final = 18
_SCALE: Final = 1.4
"""Pixels of a drawing's unit, where nothing else says how large it is: so its words are as large as a page's."""

_ABOVE, _BELOW = 24, 42
"""What a chart keeps free above and below its rows, for its axis."""

_SHAPES: Final = (
    "m-4 0a4 4 0 1 0 8 0a4 4 0 1 0-8 0z",
    "m-1.5-6h3v12h-3z",
    "m0-5.5l4.5 5.5l-4.5 5.5l-4.5-5.5z",
    "m0-5l5 9h-10z",
)
"""Marks that are told apart without colours, too: a disc, a bar, a diamond and a triangle."""


def lines(about: About, x: Axis, y: Axis, curves: Sequence[tuple[str, Curve]], *, level: float | None = None) -> str:
    """A line for each curve, told apart by colour and dash, with its name below; `level` marks one value across."""
    chart = Chart(about, x, y)
    for place, (name, curve) in enumerate(curves):
        chart.line(curve, f"tenant-{place}")
        at = HEIGHT + _ROW * (place + 0.5)
        chart.svg.append(element("path", d=f"M46 {at - 4:.1f}h32", class_=f"line tenant-{place}"))
        chart.text(88, at, name)
    if level is not None:
        chart.level(level, "bound")
    return _file(chart, HEIGHT + _ROW * len(curves))


def rows(
    about: About, x: Axis, marks: Sequence[str], of: Sequence[tuple[str, Sequence[float | None]]], *, left: int
) -> str:
    """A row for each name, with marks where its values are.

    Args:
        about: what the chart is called and says.
        x: the axis of all values.
        marks: what the values of a row are, in their order: at most as many as there are shapes.
        of: names with their values; None is not marked, and a name without values is a heading.
        left: where rows begin, behind their names.
    """
    height = _ABOVE + _ROW * len(of) + _BELOW
    chart = Chart(about, x, None, height=height, left=left)
    for place, (name, values) in enumerate(of):
        y = _ABOVE + _ROW * (place + 0.5)
        chart.text(left - 8, y + 4, name, "end", None if values else "label")
        for mark, value in enumerate(values):
            if value is not None:
                _mark(chart, mark, chart.x.at(value), y)
    for mark, name in enumerate(marks):
        at = height + _ROW * (mark + 0.5)
        _mark(chart, mark, left, at - 4)
        chart.text(left + 12, at, name)
    return _file(chart, height + _ROW * len(marks))


def _mark(chart: Chart, mark: int, x: float, y: float) -> None:
    chart.svg.append(element("path", d=f"M{x:.1f} {y:.1f}{_SHAPES[mark]}", style=f"fill: var(--tenant-{mark})"))


def _file(chart: Chart, height: int) -> str:
    """The chart as a file, on paper of its own; its size is said twice, for browsers differ in which one they heed."""
    chart.svg.set("xmlns", "http://www.w3.org/2000/svg")
    chart.svg.set("viewBox", f"0 0 {WIDTH} {height + 6}")
    wide, high = f"{_SCALE * WIDTH:.0f}", f"{_SCALE * (height + 6):.0f}"
    chart.svg.set("width", wide)
    chart.svg.set("height", high)
    chart.svg.set("style", f"width: {wide}px; height: {high}px")
    paper = element("rect", width="100%", height="100%", style="fill: var(--paper)")
    chart.svg[0:0] = [element("style", style()), paper]
    indent(chart.svg, "")
    return tostring(chart.svg, encoding="unicode") + "\n"
