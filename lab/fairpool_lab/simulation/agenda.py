"""What a simulation has yet to do, in the order in which it will be done.

Whatever is put on it comes up at its time. At one and the same time engines go first, so that a slot that comes free
can be taken; then changes, arrivals, clients that leave, and last the clocks. Of equals, who was put on it first goes
first. So the same entries always come up in the same order, and no clock and no chance takes part.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from heapq import heappop, heappush

Action = Callable[[float], None]
"""What is done, given the time."""


class Rank(enum.IntEnum):
    """Who goes first at one and the same time."""

    ENGINE = 0
    CHANGE = 1
    ARRIVAL = 2
    DEPARTURE = 3
    CLOCK = 4


class Agenda:
    """Entries by time, rank and number; each costs O(log n) of n that wait."""

    def __init__(self) -> None:
        self._entries: list[tuple[float, int, int, Action]] = []
        self.added = 0

    def add(self, at: float, rank: Rank, action: Action) -> None:
        """Do this then."""
        self.added += 1
        heappush(self._entries, (at, rank, self.added, action))

    def next(self) -> tuple[float, Action] | None:
        """Take out what is due next, and when; None if nothing is left."""
        if not self._entries:
            return None
        at, _, _, action = heappop(self._entries)
        return at, action
