"""Runs a scenario in both orders, and shows what came of it: tables, verdict and picture."""

from __future__ import annotations

import tempfile
from pathlib import Path

from rich.console import Console

from fairpool_lab import traces
from fairpool_lab.demo import runs
from fairpool_lab.demo.outcome import Outcome, verdict
from fairpool_lab.demo.picture import draw
from fairpool_lab.demo.report import table, verdict_lines
from fairpool_lab.demo.scenario import Scenario
from fairpool_lab.errors import OutputInvalid
from fairpool_lab.processes import run as run_processes

_WIDTH_OF_A_FILE = 160


def terminal() -> Console:
    """Where to show it: as wide as the terminal, or wide enough for the tables."""
    console = Console()
    return console if console.is_terminal else Console(width=_WIDTH_OF_A_FILE)


def demonstrate(chosen: Scenario, out: Path, console: Console) -> int:
    """Run a scenario in both orders and compare; returns the exit status."""
    _make(out)
    slots = chosen.config.slots.per_endpoint
    console.print(
        f"{len(chosen.trace)} requests of {len(chosen.weights)} tenants, {chosen.compression:g} times faster than "
        f"they were recorded, on {chosen.engines} engines with {slots} slots each.\n{traces.WEIGHT_RULE}"
    )
    arrival, fair = run_processes(runs.both(chosen, out, console))
    holds = judge(arrival, fair, console)
    picture = out / "picture.svg"
    draw((arrival, fair), picture)
    paths = [f"picture       {picture}  (open it in a browser)"]
    paths += [f"decision log  {run_of.path}  (fairpool lab gap {run_of.path})" for run_of in (arrival, fair)]
    console.print("\n".join(paths), markup=False, highlight=False, soft_wrap=True)
    return 0 if holds else 1


def judge(arrival: Outcome, fair: Outcome, console: Console) -> bool:
    """Print what two runs showed, and the verdict; returns whether it holds."""
    for run_of in (arrival, fair):
        console.print(table(run_of))
        for error in sorted(set(run_of.lost)):
            console.print(f"  lost in {run_of.order}: {error}", markup=False)
    checks = verdict(arrival, fair)
    console.print("By use: in tokens that the engines counted, where the others are in charges.\n")
    console.print("Verdict, from the decision logs alone", style="bold")
    console.print(verdict_lines(checks), "")
    return all(check.holds for check in checks)


def _make(out: Path) -> None:
    """Make the directory, or say at once that nothing can be written there."""
    try:
        out.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=out):
            pass
    except OSError as error:
        raise OutputInvalid(f"{out} is no directory that can be written to: {error.strerror}") from error
