"""`make bench` and `make bench-quick`: the gateway beside what people would use instead, in one run.

`make bench` takes three quarters of an hour at most: all peers, installed where they are not, under all workloads, and
whether the goals are reached. `make bench-quick` takes five minutes: nginx alone, under three of them, and whether the
ratios are still those that were recorded. Results are written as JSON. A peer that cannot be had, and a measurement
that fails, is named and left out; what was measured until a run is interrupted is in the JSON, and `--from` makes a
page of that too. `--rehearsal` is for whoever changes any of this: all of it in some minutes, with figures that mean
nothing.

A request has failed if its connection broke, if its status was none of success, if it was not answered in time, or if
the gateway itself counts it as anything but answered. Exit status 1 if any of the gateway's failed, or if a recorded
ratio got worse; 2 if nothing could be measured.
"""

from __future__ import annotations

import argparse
import datetime as dt
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from rich.console import Console

from fairpool_lab.bench import guard, page, shown, workloads
from fairpool_lab.bench.machine import described
from fairpool_lab.bench.plan import quick, whole
from fairpool_lab.bench.progress import Progress
from fairpool_lab.bench.results import Results
from fairpool_lab.bench.rounds import measure
from fairpool_lab.bench.subjects import CROWDED, DIRECT, GATEWAY
from fairpool_lab.errors import Interrupted, LabError
from fairpool_lab.processes import run

OURS: Final = (DIRECT, GATEWAY.name, CROWDED.name)
"""Of which no request may fail."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; returns the exit status."""
    options = _parser().parse_args(arguments)
    console = Console()
    try:
        results = Results.read(options.results) if options.results else _measured(options)
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
    wrong += [f"not measured: {line}" for line in results.missing]
    wrong += [f"requests failed: {line}" for line in results.failures(OURS)]
    wrong += [f"worse than recorded: {line}" for line in slower]
    for line in wrong:
        console.print(line, style="red", markup=False)
    return 1 if wrong else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="make bench", description="Measure the gateway beside its peers.")
    parser.add_argument("--quick", action="store_true", help="five minutes: beside nginx only, and what was recorded")
    parser.add_argument("--rehearsal", action="store_true", help="one round of moments, whose figures mean nothing")
    parser.add_argument("--record", action="store_true", help="keep the ratios as those to compare with from now on")
    parser.add_argument("--page", type=Path, metavar="FILE", help="a page to put them on, with charts")
    parser.add_argument("--output", type=Path, metavar="FILE", help="for the results (default: in out/)")
    parser.add_argument("--from", dest="results", type=Path, metavar="FILE", help="measure nothing: results of a run")
    return parser


def _measured(options: argparse.Namespace) -> Results:
    """What is measured, until the end or as far as it gets; written whatever ends it."""
    plan = quick() if options.quick else whole()
    if options.rehearsal:
        plan = plan.rehearsed()
    output = options.output or Path("out", "bench-quick.json" if options.quick else "bench.json")
    results, progress = (
        Results(described(), dt.datetime.now(dt.UTC).isoformat(timespec="seconds")),
        Progress(plan.takes),
    )
    progress.say(plan.said())
    try:
        with tempfile.TemporaryDirectory() as directory:
            run(measure(plan, Path(directory), results, progress))
    except Interrupted:
        raise
    except LabError as error:
        if not results.measured:
            raise
        results.missing.append(f"the rest of the run: {error}")
    finally:
        if results.measured:
            results.write(output)
            progress.say(f"what was measured is in {output}")
    return results


if __name__ == "__main__":
    sys.exit(main())
