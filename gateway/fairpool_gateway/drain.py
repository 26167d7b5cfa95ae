"""How fast a queue drains, so that whoever is refused can be told when to come back."""

from __future__ import annotations

import math

from fairpool_gateway.errors import RETRY_AFTER_LEAST, RETRY_AFTER_MOST

_MEMORY = 10.0
"""Seconds over which the rate is averaged."""


class DrainRate:
    """How fast requests leave the queue for slots.

    An exponential average over the last seconds: each departure adds `1/_MEMORY`, and all of it fades with time.
    """

    def __init__(self) -> None:
        self._rate = 0.0
        self._at: float | None = None

    def note(self, now: float) -> None:
        """One request left the queue for a slot."""
        self._rate = self._faded(now) + 1 / _MEMORY
        self._at = now

    def seconds(self, now: float, waiting: int, waited: float = math.inf) -> int:
        """How long until this many are gone, in whole seconds, between the least and the most that a client is told.

        Where nothing has ever left nothing is known, and it is taken to last once more as long as the oldest has
        `waited`: a gateway that has just begun sends nobody away for a minute.
        """
        if self._at is None:
            return math.ceil(min(max(waited, RETRY_AFTER_LEAST), RETRY_AFTER_MOST))
        rate = self._faded(now)
        return RETRY_AFTER_MOST if rate * RETRY_AFTER_MOST <= waiting else math.ceil(waiting / rate)

    def _faded(self, now: float) -> float:
        return 0.0 if self._at is None else self._rate * math.exp((self._at - now) / _MEMORY)
