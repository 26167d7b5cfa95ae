"""Results as tables that fit 80 columns: medians over the rounds, and for what is judged by them their range too."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import astuple, dataclass
from typing import Literal

from rich import box
from rich.table import Table

from fairpool_lab.bench import guard
from fairpool_lab.bench.goals import GUARDED, reached
from fairpool_lab.bench.results import Measured, Results, Spread, Times, spread
from fairpool_lab.bench.workloads import Kind, Workload


@dataclass(frozen=True, slots=True)
class Column:
    """A figure of a measurement, None where there was nothing to measure it by; and what to call it."""

    title: str
    of: Callable[[Measured], float | None]

    def over(self, measured: Iterable[Measured]) -> Spread | None:
        """The figure over several rounds."""
        return Spread.over(value for each in measured if (value := self.of(each)) is not None)


def _milliseconds(times: Times, part: Literal["p50", "p99"]) -> float | None:
    value: float = getattr(times, part)
    return value / 1000 if times.count else None


RATE = Column("requests/s", lambda each: each.seen.per_second)
P50 = Column("p50, ms", lambda each: _milliseconds(each.seen.latency, "p50"))
P99 = Column("p99, ms", lambda each: _milliseconds(each.seen.latency, "p99"))
CPU_EACH = Column("CPU µs,\neach", lambda each: each.cpu_per_request * 1e6 if each.seen.answered else None)
CPU = Column("CPU s, of\n100k ev.", lambda each: each.cpu_per_events if each.seen.events else None)
LATE50 = Column("late\np50, ms", lambda each: _milliseconds(each.seen.event_lateness, "p50"))
LATE99 = Column("late\np99, ms", lambda each: _milliseconds(each.seen.event_lateness, "p99"))
FIRST = Column("first byte\np99, ms", lambda each: _milliseconds(each.seen.first_byte, "p99"))
MEMORY = Column("memory,\nMiB", lambda each: each.memory / (1 << 20))

COLUMNS = {Kind.WHOLE: (RATE, P50, P99, CPU_EACH, MEMORY), Kind.STREAM: (CPU, LATE50, LATE99, FIRST, MEMORY)}


@dataclass(frozen=True, slots=True)
class Row:
    """One subject under one workload: each column's figure, and how many requests failed."""

    subject: str
    figures: tuple[Spread | None, ...]
    failed: int


def written(value: float) -> str:
    """A figure with as many digits as say something."""
    return f"{value:,.{0 if value >= 100 else 1 if value >= 10 else 2 if value >= 1 else 3}f}"


def rows(results: Results, workload: Workload) -> list[Row]:
    """A row for each subject that met the workload."""
    made = []
    for subject in results.subjects:
        if measured := results.of(subject, workload.name):
            figures = tuple(column.over(measured) for column in COLUMNS[workload.kind])
            made.append(Row(subject, figures, sum(sum(each.seen.failed.values()) for each in measured)))
    return made


def table(results: Results, workload: Workload) -> Table:
    """One workload, a row for each subject."""
    shown = Table(
        box=box.SIMPLE_HEAD, pad_edge=False, title=f"({workload.name}) {workload.title}", title_justify="left"
    )
    shown.add_column("", no_wrap=True)
    for column in COLUMNS[workload.kind]:
        shown.add_column(column.title, justify="right", no_wrap=True)
    shown.add_column("failed", justify="right", no_wrap=True)
    for row in rows(results, workload):
        cells = [written(over.median) if over else "" for over in row.figures]
        failed = f"{row.failed:,}" if row.failed else ""
        shown.add_row(row.subject, *cells, failed, style="red" if failed else "")
    return shown


def tables(results: Results, workloads: Sequence[Workload]) -> list[Table]:
    """All workloads that were measured."""
    return [table(results, workload) for workload in workloads if rows(results, workload)]


def goals(results: Results) -> Table:
    """What is to be reached, and what was."""
    shown = Table(box=box.SIMPLE_HEAD, pad_edge=False, title="Goals", title_justify="left")
    shown.add_column("", overflow="fold")
    for column in ("median", "least", "greatest", "goal", ""):
        shown.add_column(column, justify="right", no_wrap=True)
    for goal, over in reached(results):
        bound = f"{'≥' if goal.at_least else '≤'} {goal.bound:g}"
        if over is None:
            shown.add_row(goal.says, "not measured", "", "", bound, "")
            continue
        met = goal.met(over.median)
        cells = [f"{value:.2f}" for value in astuple(over)]
        shown.add_row(goal.says, *cells, bound, "met" if met else "missed", style="" if met else "red")
    return shown


def ratios(results: Results) -> Table:
    """The guarded ratios beside the recorded ones."""
    recorded, rounds = guard.read(), list(results.rounds())
    shown = Table(box=box.SIMPLE_HEAD, pad_edge=False, title="Ratios", title_justify="left")
    shown.add_column("", overflow="fold")
    for column in ("median", "least", "greatest", "recorded"):
        shown.add_column(column, justify="right", no_wrap=True)
    for name, (figure, _) in GUARDED.items():
        over = spread(rounds, figure)
        cells = [f"{value:.3f}" for value in astuple(over)] if over else ["not measured", "", ""]
        shown.add_row(name, *cells, f"{recorded[name]:.3f}" if name in recorded else "not yet")
    return shown
