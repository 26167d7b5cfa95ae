"""`fairpool lab report LOG… --html FILE`: what gateways decided, as one page with charts.

The page is that of `fairpool lab run --html`, of real gateways' decision logs: one, or several side by side, such as
the same day before and after an edit of weights. Shares and throughput count what requests were charged. Exit status 2:
a log cannot be used.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from fairpool_lab import decisions, report
from fairpool_lab.errors import OptionInvalid
from fairpool_lab.measures.occupancy import occupancy


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    parser.add_argument("logs", type=Path, nargs="+", metavar="LOG", help="a decision log")
    parser.add_argument("--html", type=Path, required=True, metavar="FILE", help="where the page goes")
    parser.add_argument(
        "--slots", type=int, metavar="N", help="what all endpoints had together (default: the most that were taken)"
    )
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Read, measure and write."""
    if options.slots is not None and options.slots < 1:
        raise OptionInvalid(f"--slots: must be positive, not {options.slots}")
    runs, about = [], []
    for path in options.logs:
        log = decisions.read(path)
        slots = options.slots or max(occupancy(log.events).taken, default=0) or 1
        runs.append(report.measured(path.name, log, slots=slots))
        about.append((path.name, f"pool {log.header.pool}, {len(log.events):,} events, {slots} slots"))
    title = f"Decisions in {' and '.join(path.name for path in options.logs)}"
    report.write(options.html, report.Report(title, (*about, ("command", options.command)), tuple(runs)))
    print(f"Charts are in {options.html}.")
    return 0
