"""What the study of the bound has found, as its page and its file of figures have it."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec


class Verdict(msgspec.Struct, frozen=True):
    """How close gaps came to their bounds, at most, and how many ordered pairs of tenants exceeded theirs."""

    ratio: float
    exceeded: int
    pairs: int


class OnTrace(msgspec.Struct, frozen=True):
    """Dispatched charges on one trace: in fair order, the same with clients that leave, and in order of arrival."""

    trace: str
    requests: int
    tenants: int
    dealt: bool
    fair: Verdict
    impatient: Verdict
    left: int
    in_order: Verdict


class OnAdversary(msgspec.Struct, frozen=True):
    """Dispatched charges on one adversary, by policy."""

    name: str
    attempt: str
    requests: int
    verdicts: dict[str, Verdict]


class Completed(msgspec.Struct, frozen=True):
    """True costs completed with so many slots: on all traces, by estimator, and behind the adverse engine."""

    slots: int
    traces: dict[str, Verdict]
    held_back: float


class Study(msgspec.Struct, frozen=True):
    """All figures."""

    traces: tuple[OnTrace, ...]
    adversaries: tuple[OnAdversary, ...]
    drawn: dict[str, Verdict]
    completed: tuple[Completed, ...]


def together(verdicts: Iterable[Verdict]) -> Verdict:
    """That of several runs."""
    every = tuple(verdicts)
    return Verdict(
        max((each.ratio for each in every), default=0.0),
        sum(each.exceeded for each in every),
        sum(each.pairs for each in every),
    )
