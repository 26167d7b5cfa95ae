"""Results as tables that fit 80 columns: of each figure the median over the rounds, the least and the greatest."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rich import box
from rich.table import Table

from fairpool_lab.bench.results import Measured, Results, Spread
from fairpool_lab.bench.workloads import Kind, Workload


@dataclass(frozen=True, slots=True)
class Column:
    """A figure of a measurement, what to call it and how to write it."""

    title: str
    of: Callable[[Measured], float]
    form: str = "{:,.2f}"


RATE = Column("requests/s", lambda each: each.seen.per_second, "{:,.0f}")
P50 = Column("p50, ms", lambda each: each.seen.latency.p50 / 1000)
P99 = Column("p99, ms", lambda each: each.seen.latency.p99 / 1000)
CPU = Column("CPU s, of\n100k ev.", lambda each: each.cpu_per_events)
LATE50 = Column("late\np50, ms", lambda each: each.seen.event_lateness.p50 / 1000)
LATE99 = Column("late\np99, ms", lambda each: each.seen.event_lateness.p99 / 1000)
FIRST = Column("first byte\np99, ms", lambda each: each.seen.first_byte.p99 / 1000)
MEMORY = Column("memory,\nMiB", lambda each: each.memory / (1 << 20), "{:,.0f}")

COLUMNS = {Kind.WHOLE: (RATE, P50, P99, MEMORY), Kind.STREAM: (CPU, LATE50, LATE99, FIRST, MEMORY)}


def figures(results: Results, workload: Workload) -> list[tuple[str, list[tuple[Column, Spread]], int]]:
    """By subject: each figure, and how many requests failed."""
    rows = []
    for subject in results.subjects:
        if not (measured := results.of(subject, workload.name)):
            continue
        row = []
        for column in COLUMNS[workload.kind]:
            values = [column.of(each) for each in measured if each.seen.events or workload.kind is Kind.WHOLE]
            if over := Spread.over(values):
                row.append((column, over))
        rows.append((subject, row, sum(sum(each.seen.failed.values()) for each in measured)))
    return rows


def table(results: Results, workload: Workload) -> Table:
    """One workload, a row for each subject."""
    shown = Table(
        box=box.SIMPLE_HEAD, pad_edge=False, title=f"({workload.name}) {workload.title}", title_justify="left"
    )
    shown.add_column("", no_wrap=True)
    for column in COLUMNS[workload.kind]:
        shown.add_column(column.title, justify="right", no_wrap=True)
    shown.add_column("failed", justify="right", no_wrap=True)
    for subject, row, failed in figures(results, workload):
        cells = [column.form.format(over.median) for column, over in row]
        cells += [""] * (len(COLUMNS[workload.kind]) - len(cells))
        shown.add_row(subject, *cells, f"{failed:,}" if failed else "", style="red" if failed else "")
    return shown


def tables(results: Results, workloads: Sequence[Workload]) -> list[Table]:
    """All workloads that were measured."""
    return [
        table(results, workload)
        for workload in workloads
        if any(results.of(name, workload.name) for name in results.subjects)
    ]
