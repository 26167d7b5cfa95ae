"""What is told to people as Events: what somebody has to do something about, once.

What always holds: an Event goes with a condition that became so, or became so of a newer edition; what was said before
is not said again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from fairpool_operator.compile.aspects import STALLING
from fairpool_operator.compile.compiled import Event
from fairpool_operator.compile.gateways import FAILED, STUCK
from fairpool_operator.resources import Condition, Metadata

_ACTED_UPON: Final = frozenset({FAILED, STUCK})
_LONGEST: Final = 1024
"""Bytes in an Event's note."""


def events(kind: str, metadata: Metadata, after: Iterable[Condition], before: Iterable[Condition]) -> Iterator[Event]:
    """What is to be told about one resource."""
    said = {(each.reason, each.observed_generation) for each in before if _needs_somebody(each)}
    for each in filter(_needs_somebody, after):
        if (each.reason, each.observed_generation) not in said:
            said.add((each.reason, each.observed_generation))
            yield Event(kind, metadata, each.reason, _cut(each.message))


def _cut(message: str) -> str:
    text = message.encode()
    return message if len(text) <= _LONGEST else text[: _LONGEST - 4].decode(errors="ignore") + " ..."


def _needs_somebody(condition: Condition) -> bool:
    return condition.reason in _ACTED_UPON or (condition.type in STALLING and condition.status == "False")
