"""How soon is put back what somebody else changes again and again, so that two who want it otherwise do not race.

What always holds: what is wanted anew is written at once, and what somebody changed is put back at once as long as that
happens now and then. Of what has been put back several times in a row, each time not long after the one before, every
further time waits twice as long, up to a minute. Times are in seconds, on a clock that never goes back.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from typing import Final

Name = tuple[str, str, str]
"""A kind, a namespace and a name."""

AT_ONCE: Final = 5
"""How often something is put back without waiting."""
FIRST_DELAY, MOST_DELAY = 1.0, 60.0
_FORGOTTEN_AFTER: Final = 5 * MOST_DELAY


@dataclass(frozen=True, slots=True)
class _Written:
    edition: str
    put_back: int
    at: float

    def due(self, most: float) -> float:
        beyond = self.put_back - AT_ONCE
        return self.at if beyond < 0 else self.at + min(FIRST_DELAY * 2.0 ** min(beyond, 32), most)


class Contests:
    """Remembers what was written lately, in which edition, and how often that was put back."""

    def __init__(self) -> None:
        self._written: OrderedDict[Name, _Written] = OrderedDict()

    def wait(self, name: Name, edition: str, now: float, most: float = MOST_DELAY) -> float:
        """In how many seconds this edition may be written; 0: now. It is at most so long after the last time."""
        last = self._written.get(name)
        return 0.0 if last is None or last.edition != edition else max(0.0, last.due(most) - now)

    def written(self, name: Name, edition: str, now: float) -> None:
        """This edition is being written."""
        while self._written and next(iter(self._written.values())).at < now - _FORGOTTEN_AFTER:
            self._written.popitem(last=False)
        last = self._written.pop(name, None)
        again = last is not None and last.edition == edition
        self._written[name] = _Written(edition, last.put_back + 1 if last is not None and again else 0, now)
