"""`docs/performance.md`, as far as it is measured: goals, a table and charts of each run of `make bench`.

What is measured stands between two marks and is written anew by each run; what people write around it stays.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Final

from fairpool_lab.bench import shown, workloads
from fairpool_lab.bench.charts import Dot, chart
from fairpool_lab.bench.goals import reached
from fairpool_lab.bench.results import Results, Spread
from fairpool_lab.bench.shown import Column
from fairpool_lab.bench.subjects import CROWDED, GATEWAY
from fairpool_lab.bench.workloads import Workload
from fairpool_lab.errors import FileInvalid, OutputInvalid

BEGINS: Final = "<!-- measured by make bench: what stands from here is written by it -->"
ENDS: Final = "<!-- measured by make bench: up to here -->"
_EMPTY: Final = f"# Performance\n\n{BEGINS}\n{ENDS}\n"


@dataclass(frozen=True, slots=True)
class Picture:
    """A chart of the page: a figure of one workload."""

    file: str
    title: str
    workload: Workload
    column: Column


PICTURES: Final = (
    Picture("requests.svg", "Requests in a second at 64 connections: more is better", workloads.SIXTY_FOUR, shown.RATE),
    Picture(
        "crowd.svg", "p99 of the time of an answer at 256 connections, in ms: less is better", workloads.MANY, shown.P99
    ),
    Picture(
        "latency.svg",
        "p99 of the time of an answer at 2,000 requests/s, in ms: less is better",
        workloads.STEADY,
        shown.P99,
    ),
    Picture(
        "events.svg", "Processor seconds for 100,000 events, 200 streams: less is better", workloads.STREAMS, shown.CPU
    ),
    Picture(
        "lateness.svg",
        "p99 of the lateness of events, 200 streams, in ms: less is better",
        workloads.STREAMS,
        shown.LATE99,
    ),
)


def write(results: Results, path: Path) -> None:
    """Write the page, and its charts beside it in a directory of the page's name.

    Raises:
        FileInvalid: there is a page without the two marks.
        OutputInvalid: it cannot be written.
    """
    try:
        before = path.read_text(encoding="utf-8") if path.exists() else _EMPTY
        if before.count(BEGINS) != 1 or ENDS not in before.partition(BEGINS)[2]:
            raise FileInvalid(str(path), None, "lacks the two marks between which the measured part stands")
        head, _, rest = before.partition(BEGINS)
        charts = path.with_suffix("")
        charts.mkdir(parents=True, exist_ok=True)
        drawn = [picture for picture in PICTURES if _draw(results, picture, charts)]
        measured = "\n".join(_lines(results, drawn, charts.name))
        path.write_text(f"{head}{BEGINS}\n\n{measured}\n{ENDS}{rest.partition(ENDS)[2]}", encoding="utf-8")
    except OSError as error:
        raise OutputInvalid(f"{path} cannot be written: {error.strerror}") from error


def _draw(results: Results, picture: Picture, directory: Path) -> bool:
    """Draw one chart; false if nothing of it was measured."""
    place = shown.COLUMNS[picture.workload.kind].index(picture.column)
    dots = [
        Dot(row.subject, over, row.subject in {GATEWAY.name, CROWDED.name})
        for row in shown.rows(results, picture.workload)
        if (over := row.figures[place]) is not None
    ]
    if dots:
        (directory / picture.file).write_text(chart(picture.title, dots), encoding="utf-8")
    return bool(dots)


def _lines(results: Results, drawn: Sequence[Picture], charts: str) -> Iterator[str]:
    met = {name: {each.round for each in results.measured if each.subject == name} for name in results.subjects}
    rounds = max(map(len, met.values()), default=0)
    fewer = [f"{len(those)} of them for {name}" for name, those in met.items() if len(those) < rounds]
    often = f" ({', '.join(fewer)})" if fewer else ""
    yield f"Measured on {results.began[:10]}, in {rounds} interleaved rounds{often}, on {results.machine}."
    yield "Each subject has one core, load and endpoint the other. Medians, and in brackets the range of the rounds."
    yield ""
    yield "| | |"
    yield "|---|---|"
    yield from (f"| {name} | {about} |" for name, about in results.subjects.items())
    yield ""
    yield from (f"{name} is left out: {' '.join(reason.split())}\n" for name, reason in results.left_out.items())
    yield from (f"Not measured: {' '.join(reason.split())}\n" for reason in results.missing)
    yield "| goal | bound | measured | |"
    yield "|---|---:|---:|---|"
    for goal, over in reached(results):
        bound = f"{'≥' if goal.at_least else '≤'} {goal.bound:g}"
        if over is None:
            yield f"| {goal.says} | {bound} | not measured | |"
        else:
            verdict = "met" if goal.met(over.median) else "missed"
            yield f"| {goal.says} | {bound} | {ranged(over)} | {verdict} |"
    yield ""
    yield from (f"![{picture.title}]({charts}/{picture.file})\n" for picture in drawn)
    for workload in workloads.ALL:
        yield from _table(results, workload)


def _table(results: Results, workload: Workload) -> Iterator[str]:
    if not (rows := shown.rows(results, workload)):
        return
    columns = shown.COLUMNS[workload.kind]
    yield f"**({workload.name[0]}) {workload.title}**"
    yield ""
    yield f"| | {' | '.join(' '.join(column.title.split()) for column in columns)} | failed |"
    yield f"|---|{'---:|' * (len(columns) + 1)}"
    for row in rows:
        cells = [ranged(over) if over else "" for over in row.figures]
        yield f"| {row.subject} | {' | '.join(cells)} | {f'{row.failed:,}' if row.failed else ''} |"
    yield ""


def ranged(over: Spread) -> str:
    """The median, and the range of the rounds."""
    return "{} ({} to {})".format(*map(shown.written, astuple(over)))
