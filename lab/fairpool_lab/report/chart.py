"""One chart as inline SVG: axes, lines and marks in a frame of fixed size, which the page scales to whatever fits.

Colours are classes, and the page's style says what they are on light and on dark paper. Every chart has a title and a
description in words, for those who do not see it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final
from xml.etree.ElementTree import Element

from fairpool_lab.report.markup import element
from fairpool_lab.report.report import Curve
from fairpool_lab.report.scales import Scale, short

WIDTH: Final = 420
HEIGHT: Final = 260
_LEFT, _RIGHT, _TOP, _BOTTOM = 46, 14, 24, 42


@dataclass(frozen=True, slots=True)
class Axis:
    """What an axis shows: its values from `least` to `most`, what they are, and how they are written."""

    label: str
    least: float
    most: float
    logarithmic: bool = False
    written: Callable[[float], str] = short


@dataclass(frozen=True, slots=True)
class About:
    """What a chart is called, what it says in words, and its id in the page."""

    name: str
    title: str
    words: str


class Chart:
    """A chart that is drawn on; `svg` is what it has become."""

    def __init__(self, about: About, x: Axis, y: Axis | None, *, height: int = HEIGHT, left: int = _LEFT) -> None:
        self._bottom = height - _BOTTOM
        self.x = Scale(x.least, x.most, left, WIDTH - _RIGHT, x.logarithmic)
        self.svg = element(
            "svg",
            element("title", about.title, id=f"{about.name}-title"),
            element("desc", about.words, id=f"{about.name}-words"),
            viewBox=f"0 0 {WIDTH} {height}",
            role="img",
            aria_labelledby=f"{about.name}-title {about.name}-words",
        )
        self._draw_x(x)
        if y is not None:
            self.y = Scale(y.least, y.most, self._bottom, _TOP, y.logarithmic)
            self._draw_y(y)

    def line(self, curve: Curve, look: str, *, steps: bool = False) -> None:
        """A line through the curve's points, or steps that keep each value until the next time."""
        if curve.times:
            self._add(element("path", d=self._path(curve, steps=steps), class_=f"line {look}"))

    def area(self, curve: Curve, look: str) -> None:
        """What lies below a curve's steps."""
        if curve.times:
            ends = f"V{self._bottom} H{self.x.at(curve.times[0]):.1f} Z"
            self._add(element("path", d=f"{self._path(curve, steps=True)} {ends}", class_=f"area {look}"))

    def moment(self, time: float, words: str) -> None:
        """A mark across the chart at one time."""
        x = self.x.at(time)
        self._add(element("path", d=f"M{x:.1f} {_TOP}V{self._bottom}", class_="moment"))
        beyond = x > WIDTH * 0.75
        self.text(x + (-4 if beyond else 4), _TOP + 11, words, "end" if beyond else "start", "small")

    def level(self, value: float, look: str) -> None:
        """A line across the chart at one value."""
        self._add(element("path", d=f"M{self.x.start:.1f} {self.y.at(value):.1f}H{self.x.end:.1f}", class_=look))

    def disc(self, x: float, y: float, look: str) -> None:
        """A round mark, in the chart's own units."""
        self._add(element("circle", cx=round(x, 1), cy=round(y, 1), r=4.5, class_=look))

    def bar(self, x: float, y: float, look: str) -> None:
        """An upright mark, in the chart's own units."""
        self._add(element("path", d=f"M{x:.1f} {y - 6:.1f}v12", class_=look))

    def link(self, x: float, until: float, y: float, look: str) -> None:
        """A level line from one mark to another, in the chart's own units."""
        self._add(element("path", d=f"M{x:.1f} {y:.1f}H{until:.1f}", class_=look))

    def text(self, x: float, y: float, words: str, anchor: str = "start", look: str | None = None) -> None:
        """Words, in the chart's own units."""
        self._add(element("text", words, x=round(x, 1), y=round(y, 1), text_anchor=anchor, class_=look))

    def _draw_x(self, axis: Axis) -> None:
        for value in self.x.ticks():
            x = self.x.at(value)
            self._add(element("path", d=f"M{x:.1f} {_TOP}V{self._bottom}", class_="grid"))
            at_the_edge = x > WIDTH - 24
            self.text(
                WIDTH - 2 if at_the_edge else x,
                self._bottom + 17,
                axis.written(value),
                "end" if at_the_edge else "middle",
            )
        self.text((self.x.start + self.x.end) / 2, self._bottom + 36, axis.label, "middle", "label")

    def _draw_y(self, axis: Axis) -> None:
        for value in self.y.ticks():
            y = self.y.at(value)
            self._add(element("path", d=f"M{self.x.start:.1f} {y:.1f}H{self.x.end:.1f}", class_="grid"))
            self.text(self.x.start - 6, y + 4, axis.written(value), "end")
        self.text(2, 13, axis.label, "start", "label")

    def _path(self, curve: Curve, *, steps: bool) -> str:
        points = [(self.x.at(time), self.y.at(value)) for time, value in zip(curve.times, curve.values, strict=True)]
        first, *rest = points
        join = "H{0:.1f}V{1:.1f}" if steps else "L{0:.1f} {1:.1f}"
        return f"M{first[0]:.1f} {first[1]:.1f}" + "".join(join.format(*point) for point in rest)

    def _add(self, child: Element) -> None:
        self.svg.append(child)
