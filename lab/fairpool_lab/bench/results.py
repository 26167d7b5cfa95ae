"""What was measured: each round as the load generator saw it, with the processor time and the memory that it took.

Only what is of one round is compared, so that ratios do not depend on what else the machine had to do meanwhile.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec

from fairpool_lab.errors import FileInvalid, OutputInvalid

PER_EVENTS: Final = 100_000


class Times(msgspec.Struct, frozen=True):
    """Percentiles of times, in microseconds."""

    count: int
    mean: float
    p50: float
    p90: float
    p99: float
    p999: float
    max: float


class Seen(msgspec.Struct, frozen=True):
    """What the load generator prints. `large` and `errors` count requests, `events` those of streams."""

    begun: int
    answered: int
    large: int
    per_second: float
    events: int
    cpu_seconds: float
    latency: Times
    large_latency: Times
    first_byte: Times
    sent_late: Times
    event_lateness: Times
    statuses: dict[str, int]
    errors: dict[str, int]

    @property
    def failed(self) -> dict[str, int]:
        """The kinds of errors that there were."""
        return {kind: number for kind, number in self.errors.items() if number}


class Measured(msgspec.Struct, frozen=True):
    """One subject under one workload in one round; processor seconds and bytes of memory are the subject's."""

    subject: str
    workload: str
    round: int
    seen: Seen
    cpu_seconds: float
    memory: int

    @property
    def cpu_per_request(self) -> float:
        """Processor seconds for each request that was answered."""
        return self.cpu_seconds / self.seen.answered

    @property
    def cpu_per_events(self) -> float:
        """Processor seconds for each 100,000 events."""
        return self.cpu_seconds / self.seen.events * PER_EVENTS


class Decided(msgspec.Struct, frozen=True):
    """The scheduler alone in one round: decisions in a second by how many tenants were backlogged."""

    round: int
    per_second: dict[int, float]


class Results(msgspec.Struct):
    """A whole run, as far as it is.

    Attributes:
        machine: on which it is.
        began: when.
        subjects: what each one is, of those that served.
        left_out: why each of the others did not, or not until the end.
        measured: one after another.
        decided: likewise.
        unexpected: how requests ended at the gateway, by its own account, that should not.
        missing: what was not measured although it was planned, a sentence each.
    """

    machine: str
    began: str
    subjects: dict[str, str] = {}
    left_out: dict[str, str] = {}
    measured: list[Measured] = []
    decided: list[Decided] = []
    unexpected: dict[str, int] = {}
    missing: list[str] = []

    def of(self, subject: str, workload: str) -> list[Measured]:
        """All rounds of one subject under one workload."""
        return [each for each in self.measured if (each.subject, each.workload) == (subject, workload)]

    def rounds(self) -> Iterator[Round]:
        """What was measured, round by round."""
        decided = {each.round: each.per_second for each in self.decided}
        for number in sorted({each.round for each in self.measured} | decided.keys()):
            by = {(each.subject, each.workload): each for each in self.measured if each.round == number}
            yield Round(by, decided.get(number, {}))

    def failures(self, subjects: Iterable[str]) -> list[str]:
        """What failed for these subjects, a line for each round in which anything did."""
        lines = [
            f"{each.subject}, {each.workload}, round {each.round}: {each.seen.failed}"
            for each in self.measured
            if each.subject in set(subjects) and each.seen.failed
        ]
        return [*lines, f"the gateway counts {self.unexpected}"] if self.unexpected else lines

    def write(self, path: Path) -> None:
        """As JSON."""
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(msgspec.json.format(msgspec.json.encode(self), indent=1) + b"\n")
        except OSError as error:
            raise OutputInvalid(f"{path} cannot be written: {error.strerror}") from error

    @classmethod
    def read(cls, path: Path) -> Results:
        """What was written."""
        try:
            return msgspec.json.decode(path.read_bytes(), type=cls)
        except OSError as error:
            raise FileInvalid(str(path), None, f"cannot be read: {error.strerror}") from error
        except msgspec.MsgspecError as error:
            raise FileInvalid(str(path), None, f"is no result of a benchmark: {error}") from error


@dataclass(frozen=True, slots=True)
class Round:
    """What was measured one after another, by subject and workload; and decisions in a second by tenants."""

    by: dict[tuple[str, str], Measured]
    decided: dict[int, float]

    def seen(self, subject: str, workload: str) -> Seen:
        """What the load saw; a KeyError if that was not measured."""
        return self.by[subject, workload].seen


Figure = Callable[[Round], float]
"""A ratio, or anything else that one round tells; a KeyError if what it needs was not measured."""


@dataclass(frozen=True, slots=True)
class Spread:
    """A figure over several rounds."""

    median: float
    least: float
    greatest: float

    @classmethod
    def over(cls, values: Iterable[float]) -> Spread | None:
        """Of some values, None if there are none."""
        known = sorted(values)
        return cls(statistics.median(known), known[0], known[-1]) if known else None


def spread(rounds: Iterable[Round], figure: Figure) -> Spread | None:
    """A figure over the rounds in which it was measured."""
    values = []
    for each in rounds:
        try:
            values.append(figure(each))
        except (KeyError, ZeroDivisionError):
            continue
    return Spread.over(values)
