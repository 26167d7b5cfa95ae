"""What is learned from completed requests: ratios and averages of the recent past, in constant memory.

Each new fact weighs 1/50 in the long run. Faster is not better: a tenant is dispatched more often while its estimate
is low than while it is high, so a nervous estimate is too low on average. The same facts in the same order give the
same figures in every process.
"""

from __future__ import annotations

from typing import Final

RATE: Final = 0.02
"""What the newest fact weighs, once there are many."""


class Ratio:
    """A ratio of two sums, in which older facts fade.

    Because sums are divided, not ratios averaged, what the ratio predicts adds up to what was seen: a large request
    counts for more than a small one.

    Args:
        value: what is believed at first.
        worth: how much of the measure below that belief is worth; it fades as facts come.
    """

    __slots__ = ("_above", "_below")

    def __init__(self, value: float, worth: float) -> None:
        self._above = value * worth
        self._below = worth

    @property
    def value(self) -> float:
        """The ratio as it is believed now; never negative."""
        return max(0.0, self._above / self._below)

    def learn(self, above: float, below: float) -> None:
        """Learn a fact; one with nothing below the line teaches nothing."""
        if below > 0:
            self._above += above - self._above * RATE
            self._below += below - self._below * RATE


class Average:
    """An exponential average, and before it a plain one: its rate is `max(0.02, 1/n)`."""

    __slots__ = ("_count", "_value")

    def __init__(self) -> None:
        self._count = 0
        self._value = 0.0

    def value(self, otherwise: float) -> float:
        """The average, or `otherwise` before the first fact."""
        return self._value if self._count else otherwise

    def learn(self, fact: float) -> None:
        """Learn a fact."""
        self._count += 1
        self._value += (fact - self._value) * max(RATE, 1 / self._count)
