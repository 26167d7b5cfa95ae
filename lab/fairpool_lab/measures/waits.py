"""How long requests waited for their slot, from arrival to dispatch, over a whole run.

All dispatched requests count, also those dispatched after the last arrival: a cut there would hide the longest waits.
Percentiles are waits that occurred (nearest rank), never interpolated.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from fairpool_gateway.decision_log import Dispatch
from fairpool_lab.decisions import Event
from fairpool_lab.measures import history


@dataclass(frozen=True, slots=True)
class Waits:
    """The waits of some requests, in seconds, from the shortest to the longest; there is at least one."""

    seconds: tuple[float, ...]

    @property
    def p50(self) -> float:
        """Half of the requests waited no longer."""
        return self.percentile(50)

    @property
    def p99(self) -> float:
        """99 in 100 of the requests waited no longer."""
        return self.percentile(99)

    def percentile(self, percent: int) -> float:
        """The least wait that at least so many in 100 requests did not exceed."""
        return self.seconds[max(0, -(-len(self.seconds) * percent // 100) - 1)]


def waits(events: Iterable[Event]) -> dict[str, Waits]:
    """The waits of each tenant that was ever dispatched, by name."""
    events = tuple(events)
    records = history.requests(events)
    seconds = defaultdict[str, list[float]](list)
    for event in events:
        if isinstance(event, Dispatch):
            seconds[event.tenant].append(event.t - records[event.seq].arrived)
    return {tenant: Waits(tuple(sorted(seconds[tenant]))) for tenant in sorted(seconds)}
