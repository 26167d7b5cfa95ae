"""How far a benchmark is and how long it still takes, on stderr.

A line is written between two measurements and nothing meanwhile: what draws a bar would take its time from a core on
which something is measured.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import TextIO


class Progress:
    """Told of each measurement before it begins, with the seconds that are expected of it."""

    def __init__(
        self, seconds: float, *, file: TextIO | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._left = seconds
        self._done = 0.0
        self._file = file or sys.stderr
        self._clock = clock
        self._began: float | None = None
        self._current = 0.0

    def say(self, words: str) -> None:
        """Something that has to be known, on a line of its own."""
        print(words, file=self._file, flush=True)

    def begin(self, what: str, seconds: float) -> None:
        """What is measured next; what was measured until now took what it took."""
        now = self._clock()
        self._began = now if self._began is None else self._began
        self._done += self._current
        self._left -= self._current
        self._current = seconds
        pace = (now - self._began) / self._done if self._done else 1.0
        self.say(f"{_written(self._left * pace)} left: {what}")


def _written(seconds: float) -> str:
    minutes, rest = divmod(max(0, round(seconds)), 60)
    return f"{minutes}:{rest:02}"
