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
    chart.svg.set("xmlns", "http://www.w3.org/2000/svg")
    chart.svg.set("viewBox", f"0 0 {WIDTH} {HEIGHT + _ROW * len(curves) + 6}")
    paper = element("rect", width="100%", height="100%", style="fill: var(--paper)")
    chart.svg[0:0] = [element("style", style()), paper]
    indent(chart.svg, "")
    return tostring(chart.svg, encoding="unicode") + "\n"
