"""Who has the least: names with a number each, which change often, and the least of them at any moment.

Most orders are of this kind: they count something for every tenant, and whoever waits with the least count goes next.
Ties go to the name that sorts first, so a choice depends on nothing but names and numbers.

A heap holds an entry for each name and number that was put; those that are no longer true go when they surface, or
when they are the majority. So everything costs amortised O(log n).
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from typing import Final

_SPARE_ENTRIES: Final = 16
"""Entries that may be out of date before the heap is rebuilt, besides as many as are true."""


class Least:
    """Names, each with a number."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._heap: list[tuple[int, str]] = []

    def __contains__(self, name: str) -> bool:
        return name in self._numbers

    def __bool__(self) -> bool:
        return bool(self._numbers)

    def number(self, name: str) -> int:
        """The number of a name that is there."""
        return self._numbers[name]

    def put(self, name: str, number: int) -> None:
        """Give a name this number, whether or not it is new."""
        if self._numbers.get(name) == number:
            return
        self._numbers[name] = number
        heappush(self._heap, (number, name))
        if len(self._heap) > 2 * len(self._numbers) + _SPARE_ENTRIES:
            self._heap = [(true, known) for known, true in self._numbers.items()]
            heapify(self._heap)

    def discard(self, name: str) -> None:
        """Take a name away, if it is there."""
        self._numbers.pop(name, None)

    def first(self) -> tuple[int, str]:
        """The least number with its name; there is one."""
        heap = self._heap
        while self._numbers.get(heap[0][1]) != heap[0][0]:
            heappop(heap)
        return heap[0]
