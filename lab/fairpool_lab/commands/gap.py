"""`fairpool lab gap FILE`: did any tenant ever get further ahead of another than the bound allows?

The answer rests on the decision log alone, which is read once and may be of any size. Exit status 0: within the bound
over every interval; 1: not; 2: the file cannot be used.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import msgspec
from rich import box
from rich.console import Console
from rich.table import Table

from fairpool_gateway.decision_log import Header
from fairpool_lab import decisions
from fairpool_lab.errors import LogInvalid
from fairpool_lab.measures import gap

_PLAIN_WIDTH = 160
"""Columns, where the output is no terminal that has a width."""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    parser.add_argument("file", type=Path, metavar="FILE", help="a decision log")
    parser.add_argument("--pairs", type=int, default=10, metavar="N", help="show the N worst pairs (default: 10)")
    parser.add_argument("--json", action="store_true", help="print all pairs as one JSON object instead")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Measure, report and judge."""
    header, gaps = _measure(options.file)
    if options.json:
        sys.stdout.write(msgspec.json.encode(report(header, gaps)).decode() + "\n")
    else:
        console = Console(width=None if sys.stdout.isatty() else _PLAIN_WIDTH, highlight=False)
        if gaps.pairs and options.pairs > 0:
            console.print(table(header, gaps, options.pairs))
        console.print(verdict(header, gaps), markup=False, style="" if gaps.within_bound else "bold red")
    return 0 if gaps.within_bound else 1


def verdict(header: Header, gaps: gap.Gaps) -> str:
    """The verdict in words."""
    worst = gaps.worst
    if worst is None:
        return "Within the bound: no tenant was dispatched while another was backlogged beside it."
    found = (
        f"{worst.ahead} got {_tokens(worst.gap, header)} tokens per weight ({worst.gap:,} units) ahead of "
        f"{worst.behind} in events {worst.after + 1} to {worst.upto}, where the bound is "
        f"{_tokens(worst.bound, header)} ({worst.bound:,} units)."
    )
    if gaps.within_bound:
        return f"Within the bound over every interval of {len(gaps.pairs)} ordered pairs. Greatest gap: {found}"
    return f"The bound is exceeded by {gaps.exceeded} of {len(gaps.pairs)} ordered pairs. Worst: {found}"


def table(header: Header, gaps: gap.Gaps, pairs: int) -> Table:
    """The worst pairs, each with its worst gap."""
    shown = Table(
        box=box.SIMPLE_HEAD, title=f"{header.pool}: the worst of {len(gaps.pairs)} pairs", title_justify="left"
    )
    for column in ("ahead", "behind"):
        shown.add_column(column, overflow="fold")
    for column in ("gap, tokens/weight", "bound", "gap/bound", "gap, units", "bound, units", "events"):
        shown.add_column(column, justify="right", overflow="fold")
    for pair in gaps.pairs[:pairs]:
        worst = pair.worst
        shown.add_row(
            worst.ahead,
            worst.behind,
            _tokens(worst.gap, header),
            _tokens(worst.bound, header),
            f"{worst.ratio:.2f}",
            str(worst.gap),
            str(worst.bound),
            f"{worst.after + 1} to {worst.upto}",
            style="" if pair.within_bound else "red",
        )
    return shown


def report(header: Header, gaps: gap.Gaps) -> dict[str, Any]:
    """Everything, for programs. Gaps and bounds are in units, `q` of them to a token."""
    return {
        "pool": header.pool,
        "q": header.q,
        "dispatches": gaps.dispatches,
        "within_bound": gaps.within_bound,
        "exceeded": gaps.exceeded,
        "worst": asdict(gaps.worst) if gaps.worst else None,
        "pairs": [asdict(pair) for pair in gaps.pairs],
    }


def _measure(path: Path) -> tuple[Header, gap.Gaps]:
    try:
        with path.open("rb") as lines:
            header, events = decisions.stream(lines, str(path))
            return header, gap.measure(events)
    except OSError as error:
        raise LogInvalid(str(path), None, f"cannot be read: {error.strerror}") from error


def _tokens(units: int, header: Header) -> str:
    return f"{units / header.q:,.1f}"
