"""How many slots were taken, and whether any stayed free while somebody waited: what an order costs in throughput.

A slot is taken from a request's dispatch to its first completion; what a retry takes beyond that is not in a log.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise

from fairpool_gateway.decision_log import Arrive, Complete, Dispatch, Remove
from fairpool_lab.decisions import Event


@dataclass(frozen=True, slots=True)
class Occupancy:
    """From `times[k]` on, `taken[k]` slots were taken and `waiting[k]` requests waited; the last time is the end."""

    times: tuple[float, ...]
    taken: tuple[int, ...]
    waiting: tuple[int, ...]

    def utilisation(self, slots: int) -> float:
        """The part of so many slots that was taken, over the whole time; 0 if there was none."""
        return _part(((seconds, taken) for seconds, taken, _ in self._stretches()), slots, otherwise=0.0)

    def utilisation_while_waiting(self, slots: int) -> float:
        """The same over the time in which somebody waited: 1 if no slot was ever free then, or nobody waited."""
        waited = ((seconds, taken) for seconds, taken, waiting in self._stretches() if waiting)
        return _part(waited, slots, otherwise=1.0)

    def _stretches(self) -> Iterator[tuple[float, int, int]]:
        for (since, until), taken, waiting in zip(pairwise(self.times), self.taken, self.waiting, strict=False):
            yield until - since, taken, waiting


def occupancy(events: Iterable[Event]) -> Occupancy:
    """What a log tells, from its first event to its last."""
    times: list[float] = []
    taken: list[int] = []
    waiting: list[int] = []
    queued = 0
    running = set[str]()
    for event in events:
        match event:
            case Arrive():
                queued += 1
            case Remove():
                queued -= 1
            case Dispatch(request=request):
                queued -= 1
                running.add(request)
            case Complete(request=request):
                running.discard(request)
        if not times or times[-1] != event.t:
            times.append(event.t)
            taken.append(len(running))
            waiting.append(queued)
        else:
            taken[-1], waiting[-1] = len(running), queued
    return Occupancy(tuple(times), tuple(taken), tuple(waiting))


def _part(stretches: Iterable[tuple[float, int]], slots: int, *, otherwise: float) -> float:
    whole = used = 0.0
    for seconds, taken in stretches:
        whole += seconds
        used += seconds * taken
    return used / (slots * whole) if whole else otherwise
