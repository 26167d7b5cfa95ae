"""What all studies have in common: what they are given, how they show how far they are, and what they make."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Final, NamedTuple, Protocol, TypeVar

import msgspec

from fairpool_lab import traces
from fairpool_lab.traces import Trace

T = TypeVar("T")

DEALT: Final = 20
"""Tenants that a trace is dealt to which tells none."""


class Given(NamedTuple):
    """A trace that a study is of, and what its file is called."""

    name: str
    trace: Trace


class Traces(enum.Enum):
    """How many traces a study is of."""

    NONE = "no trace"
    ONE = "one trace"
    SOME = "one trace or more"


def owned(trace: Trace) -> Trace:
    """The trace with tenants: dealt, always in the same way, where it tells none."""
    if any(request.tenant != traces.EVERYBODY for request in trace):
        return trace
    return traces.dealt(trace, DEALT, Random(0))  # noqa: S311 - to be repeatable


class Walk(Protocol):
    """Goes through the parts of a study, so that it can be seen which one it is at, and how many are left."""

    def __call__(self, parts: Sequence[T], words: Callable[[T], str]) -> Iterator[T]:
        """The parts in their order; each is worked on when the next one is asked for. `words` is what it is called."""


def quietly(parts: Sequence[T], words: Callable[[T], str]) -> Iterator[T]:  # noqa: ARG001 - a `Walk`
    """A `Walk` that shows nothing."""
    return iter(parts)


@dataclass(frozen=True, slots=True)
class Made:
    """What a study makes: its figures, the page about them, and drawings, each by the name of its file."""

    figures: msgspec.Struct
    page: str
    drawings: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Listed:
    """A study as it is offered to a user.

    Attributes:
        name: what it is asked for by, and what its files are called.
        about: what it is about, in a few words.
        traces: how many traces it is of.
        make: measures, and writes the page.
    """

    name: str
    about: str
    traces: Traces
    make: Callable[[Sequence[Given], Walk], Made]
