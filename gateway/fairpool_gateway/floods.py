"""A flood of things of one kind, let through one a second, so that a log can be read while everything fails.

What always holds: the first of a kind passes at once, between two that pass lies a period at least, and each that
passes tells how many it stands for, so that none is ever lost from the count. The number of kinds that are told apart
is bounded; those beyond it are one kind.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final, Generic, TypeVar

T = TypeVar("T")

PERIOD: Final = 1.0
"""Seconds."""

MOST_KINDS: Final = 256

_BEYOND: Final = object()
"""The kind of all that are too many to be told apart."""


class _Kind(Generic[T]):
    """One kind: since when its period runs, and what was held back in it."""

    __slots__ = ("held", "latest", "since")

    def __init__(self, since: float) -> None:
        self.since = since
        self.held = 0
        self.latest: T | None = None


class Floods(Generic[T]):
    """Decides of each thing whether it passes."""

    def __init__(self) -> None:
        self._kinds: dict[Hashable, _Kind[T]] = {}

    def take(self, now: float, kind: Hashable, thing: T) -> int:
        """How many the thing stands for if it passes, itself included; 0: it is held back."""
        known = self._kinds.get(kind) or self._new(now, kind)
        if known is None:
            return 1
        if now < known.since + PERIOD:
            known.held += 1
            known.latest = thing
            return 0
        number = known.held + 1
        known.since, known.held, known.latest = now, 0, None
        return number

    def settle(self, now: float, *, all_of_them: bool = False) -> list[tuple[T, int]]:
        """What passes because its period is over: the latest of each kind, with how many it stands for.

        `all_of_them`: whether it is over or not, for nothing will come any more.
        """
        passing: list[tuple[T, int]] = []
        for known in self._kinds.values():
            if known.latest is not None and (all_of_them or now >= known.since + PERIOD):
                passing.append((known.latest, known.held))
                known.since, known.held, known.latest = now, 0, None
        return passing

    def next_settling(self) -> float | None:
        """When `settle` has something to let through; None if nothing is held back."""
        return min((known.since + PERIOD for known in self._kinds.values() if known.held), default=None)

    def _new(self, now: float, kind: Hashable) -> _Kind[T] | None:
        """Start a kind's period; None if its first one passes with that."""
        if len(self._kinds) >= MOST_KINDS:
            self._kinds = {
                each: known for each, known in self._kinds.items() if known.held or now < known.since + PERIOD
            }
        if len(self._kinds) >= MOST_KINDS and kind is not _BEYOND:
            return self._kinds.get(_BEYOND) or self._new(now, _BEYOND)
        self._kinds[kind] = _Kind(now)
        return None
