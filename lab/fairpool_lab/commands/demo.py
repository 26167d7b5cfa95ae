"""`fairpool demo`: real traffic through the real gateway, once in arrival order and once fair.

Starts the gateway and four simulated engines as processes of their own on loopback, replays the busiest four minutes of
a real trace through the official client, and compares. Exit status 0: the verdict holds; 1: it does not.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import re
import time
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from fairpool_lab import traces
from fairpool_lab.demo import scenario
from fairpool_lab.demo.outcome import Outcome, outcome, verdict
from fairpool_lab.demo.picture import draw
from fairpool_lab.demo.processes import running
from fairpool_lab.demo.replay import Answer, replay
from fairpool_lab.demo.report import table, verdict_lines
from fairpool_lab.demo.scenario import Scenario

_ENGINE_SAYS = re.compile(r"engine listening on (\S+)")
_GATEWAY_SAYS = re.compile(r"to tenants on (\S+), admin on (\S+)")
_WIDTH_OF_A_FILE = 160
_INTERRUPTED = 130


HELP: Final = "real traffic through the real gateway, once in arrival order and once fair"


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    parser.add_argument("--out", type=Path, default=Path("out/demo"), metavar="DIR", help="where logs and picture go")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Run both orders and compare; returns the exit status."""
    console = Console()
    if not console.is_terminal:
        console = Console(width=_WIDTH_OF_A_FILE)
    out: Path = options.out
    out.mkdir(parents=True, exist_ok=True)
    try:
        arrival, fair = asyncio.run(_both(console, out))
    except KeyboardInterrupt:
        console.print("Interrupted; every process has ended.")
        return _INTERRUPTED
    return _compare(console, arrival, fair, out)


async def _both(console: Console, out: Path) -> tuple[Outcome, Outcome]:
    chosen = scenario.scenario()
    console.print(
        f"{len(chosen.trace)} requests of {len(chosen.weights)} tenants, {scenario.COMPRESSION:g} times faster than "
        f"they were recorded, on {scenario.ENGINES} engines with {scenario.SLOTS} slots each.\n{traces.WEIGHT_RULE}"
    )
    columns = (TextColumn("{task.description:14}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    async with contextlib.AsyncExitStack() as stack:
        engines = await asyncio.gather(
            *(
                stack.enter_async_context(
                    running(scenario.engine_command(), announces=_ENGINE_SAYS, output=out / f"engine-{number}.log")
                )
                for number in range(scenario.ENGINES)
            )
        )
        config = out / "pool.json"
        config.write_text(scenario.pool_config(chosen, [engine[1] for engine in engines]), encoding="utf-8")
        progress = stack.enter_context(Progress(*columns, console=console))
        arrival = await _one(scenario.ARRIVAL_ORDER, chosen, config, out, progress)
        fair = await _one(scenario.FAIR, chosen, config, out, progress)
    return arrival, fair


async def _one(order: str, chosen: Scenario, config: Path, out: Path, progress: Progress) -> Outcome:
    """One run, with a gateway of its own."""
    name = order.replace(" ", "-")
    decision_log = out / f"{name}.decisions.jsonl"
    bar = progress.add_task(order, total=len(chosen.trace))

    def ended(_: Answer) -> None:
        progress.advance(bar)

    command = scenario.gateway_command(order, str(config), str(decision_log))
    async with running(command, announces=_GATEWAY_SAYS, output=out / f"{name}.gateway.log") as gateway:
        answers = await replay(
            chosen.trace,
            base_url=f"{gateway[1]}/v1",
            model=scenario.MODEL,
            keys=chosen.keys,
            compression=scenario.COMPRESSION,
            on_answer=ended,
        )
    return outcome(order, decision_log, answers, len(chosen.trace))


def _compare(console: Console, arrival: Outcome, fair: Outcome, out: Path) -> int:
    began = time.perf_counter()
    picture = out / "picture.svg"
    draw((arrival, fair), picture)
    for run_of in (arrival, fair):
        console.print(table(run_of))
        for error in sorted(set(run_of.lost)):
            console.print(f"  lost in {run_of.order}: {error}")
    checks = verdict(arrival, fair)
    console.print("Verdict, from the decision logs alone", style="bold")
    console.print(verdict_lines(checks))
    console.print(f"picture       {picture}  (drawn in {time.perf_counter() - began:.1f} s; open it in a browser)")
    for run_of in (arrival, fair):
        console.print(f"decision log  {run_of.path}  (fairpool lab gap {run_of.path})")
    return 0 if all(check.holds for check in checks) else 1
