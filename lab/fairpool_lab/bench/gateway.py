"""`make bench` and `make bench-quick`: the gateway beside what people would use instead, in one run.

`make bench` takes an hour at most: all peers, installed where they are not, under all workloads, and whether the goals
are reached. `make bench-quick` takes five minutes: nginx alone, under three of them, and whether the ratios are still
those that were recorded. Results are written as JSON. A peer that cannot be had is named and left out.

A request has failed if its connection broke, if its status was none of success, if it was not answered in time, or if
the gateway itself counts it as anything but answered. Exit status 1 if any of the gateway's failed, or if a recorded
ratio got worse; 2 if nothing could be measured.
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

from fairpool_lab.bench import guard, page, shown, workloads
from fairpool_lab.bench.peers import NGINX, PEERS
from fairpool_lab.bench.results import Results
from fairpool_lab.bench.rounds import Plan, measure
from fairpool_lab.bench.subjects import CROWDED, DIRECT, GATEWAY
from fairpool_lab.errors import Interrupted, LabError
from fairpool_lab.processes import run

OURS: Final = (DIRECT, GATEWAY.name, CROWDED.name)
"""Of which no request may fail."""


def whole() -> Plan:
    """All peers, all workloads."""
    names = (DIRECT, *(peer.name for peer in PEERS), GATEWAY.name)
    pairs = [
        (name, workload)
        for workload in workloads.ALL
        for name in ((DIRECT, CROWDED.name) if workload in workloads.OF_TENANTS else names)
    ]
    return Plan((*PEERS, GATEWAY, CROWDED), pairs, rounds=5)


def quick() -> Plan:
    """Nginx, and what the guard compares; more rounds while something seems to have got worse."""
    recorded = guard.read()
    pairs = [
        (name, workload)
        for workload in (workloads.SIXTY_FOUR, workloads.STEADY, workloads.STREAMS)
        for name in (DIRECT, NGINX.name, GATEWAY.name)
    ]
    return Plan((NGINX, GATEWAY), pairs, rounds=3, doubt=lambda results: bool(guard.worse(results, recorded)), most=9)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; returns the exit status."""
    options = _parser().parse_args(arguments)
    console = Console()
    try:
        results = _results(quick() if options.quick else whole(), console)
        results.write(options.output or Path("out", "bench-quick.json" if options.quick else "bench.json"))
        if options.page:
            page.write(results, options.page)
        if options.record:
            guard.record(results)
        slower = guard.worse(results, guard.read()) if options.quick else []
    except Interrupted as error:
        return error.status
    except LabError as error:
        console.print(f"bench: {error}", style="red", markup=False)
        return 2
    for table in shown.tables(results, workloads.ALL):
        console.print(table)
    console.print(shown.ratios(results) if options.quick else shown.goals(results))
    wrong = [f"{name} is left out: {results.left_out[name]}" for name in OURS if name in results.left_out]
    wrong += [f"requests failed: {line}" for line in results.failures(OURS)]
    wrong += [f"worse than recorded: {line}" for line in slower]
    for line in wrong:
        console.print(line, style="red", markup=False)
    return 1 if wrong else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="make bench", description="Measure the gateway beside its peers.")
    parser.add_argument("--quick", action="store_true", help="five minutes: beside nginx only, and what was recorded")
    parser.add_argument("--record", action="store_true", help="keep the ratios as those to compare with from now on")
    parser.add_argument("--page", type=Path, metavar="FILE", help="a page to put them on, with charts")
    parser.add_argument("--output", type=Path, metavar="FILE", help="for the results (default: in out/)")
    return parser


def _results(plan: Plan, console: Console) -> Results:
    with tempfile.TemporaryDirectory() as directory, Progress(console=console) as progress:
        bar = progress.add_task("starting all of them", total=plan.steps)
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
