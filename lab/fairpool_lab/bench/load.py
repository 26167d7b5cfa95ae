"""`make bench-load`: what crowds cost the gateway in memory, and what they cost a tenant that is served beside them.

Each crowd meets a gateway of its own. Memory is resident memory, beyond what the gateway had before; what it may be
follows from the configuration and is what the tests hold. The neighbour's waits are from its question to the end of its
answer, in a process of its own.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from rich import box
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from fairpool_lab.crowds.scenarios import SCENARIOS, Scenario
from fairpool_lab.crowds.stage import staged
from fairpool_lab.crowds.trial import Trial, came_back, trial, waits
from fairpool_lab.errors import Interrupted, LabError
from fairpool_lab.processes import run

SECONDS = 5
"""For which each crowd stands."""

Trials = list[tuple[Scenario, Trial]]


def main() -> int:
    """Measure and print; returns the exit status, 1 if a bound did not hold or the neighbour was not served."""
    console = Console()
    try:
        with tempfile.TemporaryDirectory() as directory:
            trials = run(_measure(Path(directory), console))
    except Interrupted as error:
        return error.status
    except LabError as error:
        console.print(f"bench-load: {error}", style="red", markup=False)
        return 2
    console.print(table(trials))
    faults = [f"{scenario.name}: {fault}" for scenario, seen in trials for fault in faults_of(seen)]
    for fault in faults:
        console.print(fault, style="red", markup=False)
    return 1 if faults else 0


async def _measure(directory: Path, console: Console) -> Trials:
    trials: Trials = []
    with Progress(console=console) as progress:
        bar = progress.add_task("crowds", total=len(SCENARIOS))
        for number, scenario in enumerate(SCENARIOS.values()):
            place = directory / str(number)
            place.mkdir()
            async with staged(place, scenario.fields) as stage:
                trials.append((scenario, await trial(stage, scenario, seconds=SECONDS)))
            progress.advance(bar)
    return trials


def faults_of(seen: Trial) -> list[str]:
    """What did not hold."""
    faults = []
    if seen.growth > seen.allowed:
        faults.append(f"memory grew by {_mib(seen.growth)} MiB, where {_mib(seen.allowed)} MiB are allowed")
    if seen.failed:
        faults.append(f"the neighbour was not answered {len(seen.failed)} times: {seen.failed[0]}")
    if not came_back(seen.before, seen.after):
        faults.append(f"not all came back: {seen.before}, then {seen.after}")
    return faults


def table(trials: Trials) -> Table:
    """One row for each crowd; fits 80 columns."""
    shown = Table(box=box.SIMPLE_HEAD, title="Crowds of connections that", title_justify="left")
    for column in ("", "connec-\ntions", "peak,\nMiB", "may be,\nMiB", "after,\nMiB", "alone", "beside"):
        shown.add_column(column, justify="right" if column else "left", no_wrap=True)
    for scenario, seen in trials:
        shown.add_row(
            scenario.name,
            f"{scenario.connections:,}",
            _mib(seen.growth),
            _mib(seen.allowed),
            _mib(seen.after.rss - seen.before.rss),
            *(f"{1000 * times.p50:.0f} / {1000 * times.p99:.0f}" for times in (waits(seen.alone), waits(seen.beside))),
        )
    shown.caption = "alone, beside: waits of the neighbour, p50 / p99 in ms"
    return shown


def _mib(size: int) -> str:
    return f"{size / (1 << 20):.0f}"


if __name__ == "__main__":
    sys.exit(main())
