"""Ways to go wrong, by name, so that a test can ask a real engine for exactly the failure that it is about.

A fault is written `KIND[:ARGUMENT]`. A request's own header decides for it; otherwise what is set for all.

    refuse[:seconds]       set for all: nobody can connect (the port stays taken), until the time is over or it is
                           cleared. For one request: the connection is reset before any byte of an answer
    hang-before[:seconds]  no byte of an answer, for good or for so long
    hang-after[:seconds]   status and headers of a 200, then no byte, for good or for so long
    die[:events]           reset after so many events of a stream (default 1), or in the middle of another body
    truncate[:events]      likewise, but the connection is closed in an orderly way, with the end missing
    slow:factor            so many times slower: for all, the engine's clock; for one request, its answer alone
    429[:seconds]          too many requests, with Retry-After (default 1)
    500, 503               an error answer
    gzip                   the answer is compressed, whether or not that was asked for
    split[:bytes]          what is sent is cut into segments of 1 to so many bytes (default 16), headers too, in
                           places that follow from the seed
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from fairpool_lab.errors import FaultUnknown


class Kind(StrEnum):
    """What goes wrong."""

    REFUSE = "refuse"
    HANG_BEFORE = "hang-before"
    HANG_AFTER = "hang-after"
    DIE = "die"
    TRUNCATE = "truncate"
    SLOW = "slow"
    TOO_MANY = "429"
    ERROR = "500"
    UNAVAILABLE = "503"
    GZIP = "gzip"
    SPLIT = "split"


_DEFAULTS: dict[Kind, float | None] = {Kind.DIE: 1, Kind.TRUNCATE: 1, Kind.TOO_MANY: 1, Kind.SPLIT: 16}
_WITHOUT_ARGUMENT = frozenset({Kind.ERROR, Kind.UNAVAILABLE, Kind.GZIP})
_LEAST: dict[Kind, float] = {Kind.SLOW: 1, Kind.SPLIT: 1}


@dataclass(frozen=True, slots=True)
class Fault:
    """One way to go wrong. `argument` is what the kind makes of it: seconds, events, bytes or a factor."""

    kind: Kind
    argument: float | None = None

    @classmethod
    def parse(cls, text: str) -> Fault:
        """Read `KIND[:ARGUMENT]`.

        Raises:
            FaultUnknown: no such kind, or an argument that it cannot have.
        """
        name, _, given = text.strip().partition(":")
        try:
            kind = Kind(name)
        except ValueError:
            raise FaultUnknown(f"no fault is called {name!r}; there are {', '.join(Kind)}") from None
        if not given:
            if kind is Kind.SLOW:
                raise FaultUnknown("slow needs a factor, as in slow:3")
            return cls(kind, _DEFAULTS.get(kind))
        if kind in _WITHOUT_ARGUMENT:
            raise FaultUnknown(f"{kind} takes no argument, not {given!r}")
        try:
            argument = float(given)
        except ValueError:
            raise FaultUnknown(f"the argument of {kind} is a number, not {given!r}") from None
        least = _LEAST.get(kind, 0)
        if not least <= argument < float("inf"):
            raise FaultUnknown(f"the argument of {kind} is at least {least}, not {given!r}")
        return cls(kind, argument)

    def __str__(self) -> str:
        return str(self.kind) if self.argument is None else f"{self.kind}:{self.argument:g}"


class FaultBoard:
    """What is set to go wrong for all requests, and for how many more of them."""

    def __init__(self) -> None:
        self.fault: Fault | None = None
        self.times: int | None = None
        self.everywhere = False

    def set(self, fault: Fault | None, *, times: int | None = None, everywhere: bool = False) -> None:
        """From now on this goes wrong, `times` times or until further notice; None ends it."""
        self.fault = fault if times != 0 else None
        self.times = times
        self.everywhere = everywhere

    def take(self, *, probe: bool = False) -> Fault | None:
        """The fault of the next request. Probes are spared, and counted, only with `everywhere`."""
        fault = self.fault
        if fault is None or (probe and not self.everywhere):
            return None
        if self.times is not None:
            self.times -= 1
            if not self.times:
                self.set(None)
        return fault
