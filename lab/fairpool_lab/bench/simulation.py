"""`python -m fairpool_lab.bench.simulation`: requests per second of the simulator, and how a run grows with them.

Fixed service with one slot, ten tenants at nine tenths of its capacity, as the studies of the theory run it, and every
decision kept. Each size is run once; what counts is the time of the processor, for others may use it too. Exit status 1
if a request takes more than `MOST_SLOWER` times as long in the largest run as in the smallest, or a million of them
more than a minute.
"""

from __future__ import annotations

import sys
import time
from random import Random

from rich import box
from rich.console import Console
from rich.table import Table

from fairpool_lab.policies import POLICIES
from fairpool_lab.simulation import ESTIMATORS, Ask, FixedService, Scenario, simulate

SIZES = (10_000, 100_000, 1_000_000)
MOST_SLOWER = 2.0
MOST_SECONDS = 60.0

_LOAD = 0.9
_TOKENS_PER_SECOND = 1000.0


def main() -> int:
    """Measure and print; returns the exit status."""
    console = Console()
    shown = Table(box=box.SIMPLE_HEAD, caption="fixed service, one slot, ten tenants, load 0.9, every decision kept")
    for column in ("requests", "seconds of CPU", "requests/s", "events"):
        shown.add_column(column, justify="right")
    taken: list[float] = []
    for size in SIZES:
        scenario = busy(size)
        began = time.process_time()
        run = simulate(scenario, POLICIES["sfq"].factory)
        taken.append(time.process_time() - began)
        shown.add_row(f"{size:,}", f"{taken[-1]:.2f}", f"{size / taken[-1]:,.0f}", f"{run.events:,}")
    console.print(shown)
    slower = (taken[-1] / SIZES[-1]) / (taken[0] / SIZES[0])
    good = slower <= MOST_SLOWER and taken[-1] <= MOST_SECONDS
    console.print(
        f"a request among {SIZES[-1]:,} takes {slower:.2f} times as long as one among {SIZES[0]:,}; "
        f"{MOST_SLOWER:g} and {MOST_SECONDS:g} s in all are allowed",
        style="green" if good else "bold red",
    )
    return 0 if good else 1


def busy(requests: int, *, seed: int = 0) -> Scenario:
    """So many requests of ten tenants at random times, for a server that can just about do them."""
    chance = Random(seed)  # noqa: S311 - to be repeatable
    mean_cost = 100 + 2 * 100
    now, asks = 0.0, []
    for _ in range(requests):
        now += chance.expovariate(_LOAD * _TOKENS_PER_SECOND / mean_cost)
        tenant = f"tenant-{chance.randrange(10)}"
        asks.append(Ask(now, tenant, chance.randint(1, 199), chance.randint(1, 199)))
    return Scenario(
        lambda: FixedService(_TOKENS_PER_SECOND, lambda used: used.input + 2 * used.output),
        asks,
        slots=1,
        estimator=ESTIMATORS["oracle"].make,
    )


if __name__ == "__main__":
    sys.exit(main())
