"""Scales of charts: where a value is drawn, which values are marked on an axis, and how numbers are written there."""

from __future__ import annotations

import math
from dataclasses import dataclass

_STEPS = (1, 2, 5, 10)


@dataclass(frozen=True, slots=True)
class Scale:
    """Values from `least` to `most`, drawn from `start` to `end`; what lies outside is drawn at the nearer end."""

    least: float
    most: float
    start: float
    end: float
    logarithmic: bool = False

    def at(self, value: float) -> float:
        """Where a value is drawn."""
        least, most, value = (self._along(part) for part in (self.least, self.most, value))
        part = (value - least) / (most - least) if most > least else 0.0
        return self.start + min(1.0, max(0.0, part)) * (self.end - self.start)

    def ticks(self, about: int = 5) -> list[float]:
        """Round values to mark, about so many."""
        if not self.logarithmic:
            return _even(self.least, self.most, about)
        decades = range(math.floor(math.log10(self.least)), math.ceil(math.log10(self.most)) + 1)
        every = max(1, len(decades) // about)
        steps = (1, 2, 5) if len(decades) <= 3 else (1,)
        marked = [step * 10.0**decade for decade in decades[::every] for step in steps]
        return [value for value in marked if self.least * 0.999 <= value <= self.most * 1.001]

    def _along(self, value: float) -> float:
        return math.log10(max(value, self.least)) if self.logarithmic else value


def _even(least: float, most: float, about: int) -> list[float]:
    rough = (most - least) / about or 1.0
    magnitude = 10.0 ** math.floor(math.log10(rough))
    step = next(magnitude * step for step in _STEPS if magnitude * step >= rough * 0.999)
    first, last = math.ceil(least / step - 1e-9), math.floor(most / step + 1e-9)
    return [number * step for number in range(first, last + 1)]


def short(value: float) -> str:
    """A number of an axis: three digits at most, thousands and millions by letter."""
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{value / size:.3g}{letter}"
    return f"{value:.3g}"


def seconds(value: float) -> str:
    """A time, in the unit that suits it."""
    if value < 1:
        return f"{1000 * value:.3g} ms"
    return f"{value:.3g} s" if value < 1000 else f"{value:,.0f} s"


def times(value: float) -> str:
    """A factor."""
    return f"{value:,.1f} x"
