"""How some numbers are spread: percentiles that are numbers which occurred (nearest rank), never interpolated."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Distribution:
    """Some numbers, from the least to the greatest; there is at least one."""

    values: tuple[float, ...]

    @classmethod
    def of(cls, values: Iterable[float]) -> Distribution:
        """The distribution of these, which come in any order."""
        return cls(tuple(sorted(values)))

    @property
    def mean(self) -> float:
        """Their arithmetic mean."""
        return sum(self.values) / len(self.values)

    @property
    def p50(self) -> float:
        """Half of them are no greater."""
        return self.percentile(50)

    @property
    def p99(self) -> float:
        """99 in 100 of them are no greater."""
        return self.percentile(99)

    def percentile(self, percent: int) -> float:
        """The least of them that at least so many in 100 do not exceed."""
        return self.values[max(0, -(-len(self.values) * percent // 100) - 1)]
