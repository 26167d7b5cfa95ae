"""`make bench-scheduler`: decisions per second and memory per tenant, and how both grow with the tenants that wait.

Sizes are interleaved in each round and medians are compared. Exit status 1 if the scheduler is more than `MOST_SLOWER`
times slower with the most tenants than with the fewest. With `--json` one round and nothing else, for `make bench`.
"""

from __future__ import annotations

import argparse
import gc
import statistics
import sys
import time
import tracemalloc
from collections.abc import Sequence
from itertools import count

import msgspec
from rich import box
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from fairpool_gateway.sfq import Scheduler
from fairpool_lab.bench.backlog import TENANTS, backlogged, decide

MOST_SLOWER = 8
ROUNDS = 5
SECONDS = 1.0
_BATCH = 2_000


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; returns the exit status."""
    parser = argparse.ArgumentParser(prog="make bench-scheduler", description="Measure decisions per second.")
    parser.add_argument("--json", action="store_true", help="one round: decisions per second by backlogged tenants")
    console, as_json = Console(), parser.parse_args(arguments).json
    schedulers = {tenants: backlogged(tenants) for tenants in TENANTS}
    gc.collect()
    gc.freeze()
    if as_json:
        once = {tenants: decisions_per_second(scheduler) for tenants, scheduler in schedulers.items()}
        print(msgspec.json.encode(once).decode())
        return 0
    rates: dict[int, list[float]] = {tenants: [] for tenants in TENANTS}
    with Progress(console=console) as progress:
        bar = progress.add_task("rounds", total=ROUNDS * len(TENANTS))
        for _ in range(ROUNDS):
            for tenants, scheduler in schedulers.items():
                rates[tenants].append(decisions_per_second(scheduler))
                progress.advance(bar)
    slower = statistics.median(rates[TENANTS[0]]) / statistics.median(rates[TENANTS[-1]])
    console.print(_table(rates))
    console.print(
        f"{TENANTS[-1]:,} tenants against {TENANTS[0]}: {slower:.2f} times slower; {MOST_SLOWER} is allowed",
        style="green" if slower <= MOST_SLOWER else "bold red",
    )
    return 0 if slower <= MOST_SLOWER else 1


def decisions_per_second(scheduler: Scheduler[int]) -> float:
    """How many decisions it takes in a second."""
    numbers = count(1 << 40, _BATCH)
    decided, began = 0, time.perf_counter()
    while (taken := time.perf_counter() - began) < SECONDS:
        decide(scheduler, next(numbers), _BATCH)
        decided += _BATCH
    return decided / taken


def bytes_per_tenant(tenants: int) -> float:
    """Memory of a scheduler in which so many tenants wait, for each of them, names and two requests included."""
    tracemalloc.start()
    scheduler = backlogged(tenants)
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    del scheduler
    return held / tenants


def _table(rates: dict[int, list[float]]) -> Table:
    shown = Table(box=box.SIMPLE_HEAD, caption="a decision: one dispatch, and the arrival of its tenant's next request")
    for column in ("backlogged tenants", "decisions/s, median", "least", "greatest", "bytes per tenant"):
        shown.add_column(column, justify="right")
    for tenants, measured in rates.items():
        shown.add_row(
            f"{tenants:,}",
            f"{statistics.median(measured):,.0f}",
            f"{min(measured):,.0f}",
            f"{max(measured):,.0f}",
            f"{bytes_per_tenant(tenants):,.0f}",
        )
    return shown


if __name__ == "__main__":
    sys.exit(main())
