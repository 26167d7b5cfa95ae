"""How fast a queue drains, so that whoever is refused can be told when to come back."""

from __future__ import annotations

import math

from fairpool_gateway.errors import RETRY_AFTER_MOST

_MEMORY = 10.0
"""Seconds over which the rate is averaged."""


class DrainRate:
    """How fast requests leave the queue for slots.

    An exponential average over the last seconds: each departure adds `1/_MEMORY`, and all of it fades with time.
    """

    def __init__(self) -> None:
        self._rate = 0.0
        self._at = 0.0

    def note(self, now: float) -> None:
        """One request left the queue for a slot."""
        self._rate = self._faded(now) + 1 / _MEMORY
        self._at = now

    def seconds(self, now: float, waiting: int) -> int:
        """How long until this many are gone, in whole seconds, at most what a client may be told."""
        rate = self._faded(now)
        return RETRY_AFTER_MOST if rate * RETRY_AFTER_MOST <= waiting else math.ceil(waiting / rate)

    def _faded(self, now: float) -> float:
        return self._rate * math.exp((self._at - now) / _MEMORY)
