"""`make bench-quick`: the gateway beside what people would use instead, in one run.

It takes five minutes: the gateway, nginx, and the endpoint reached directly. Results are written as JSON.

A request has failed if its connection broke, if its status was none of success, if it was not answered in time, or if
the gateway itself counts it as anything but answered. Exit status 1 if any of the gateway's failed, 2 if nothing could
be measured.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.progress import Progress

from fairpool_lab.bench import shown, workloads
from fairpool_lab.bench.results import Results
from fairpool_lab.bench.rounds import Plan, measure
from fairpool_lab.bench.subjects import CROWDED, DIRECT, GATEWAY, NGINX
from fairpool_lab.errors import Interrupted, LabError
from fairpool_lab.processes import run

OURS: Final = (DIRECT, GATEWAY.name, CROWDED.name)
"""Of which no request may fail."""

QUICK: Final = Plan(
    subjects=(NGINX, GATEWAY),
    pairs=tuple(
        (name, workload)
        for workload in (workloads.SIXTY_FOUR, workloads.STEADY)
        for name in (DIRECT, NGINX.name, GATEWAY.name)
    ),
    rounds=5,
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; returns the exit status."""
    parser = argparse.ArgumentParser(prog="make bench", description="Measure the gateway beside its peers.")
    parser.add_argument("--quick", action="store_true", help="five minutes: against nginx only")
    parser.add_argument("--output", type=Path, default=Path("out/bench.json"), metavar="FILE", help="for the results")
    options = parser.parse_args(arguments)
    console = Console()
    plan = QUICK
    try:
        results = _results(plan, console)
        results.write(options.output)
    except Interrupted as error:
        return error.status
    except LabError as error:
        console.print(f"bench: {error}", style="red", markup=False)
        return 2
    for table in shown.tables(results, list(dict.fromkeys(workload for _, workload in plan.pairs))):
        console.print(table)
    failed = results.failures(OURS)
    for line in failed:
        console.print(f"requests failed: {line}", style="red", markup=False)
    return 1 if failed else 0


def _results(plan: Plan, console: Console) -> Results:
    with tempfile.TemporaryDirectory() as directory, Progress(console=console) as progress:
        bar = progress.add_task("", total=plan.steps)
        return run(
            measure(
                plan,
                Path(directory),
                step=lambda what: progress.update(bar, advance=1, description=what),
                say=lambda words: console.print(words, style="yellow", markup=False),
            )
        )


if __name__ == "__main__":
    sys.exit(main())
