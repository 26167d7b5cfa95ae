"""A scheduler under full load: what its benchmarks measure by time and by instructions.

A decision is one dispatch, after which the tenant's next request arrives, so that all stay backlogged and every
decision reorders the heap. Run as a program it decides when it is asked to, for whoever counts its instructions.
"""

from __future__ import annotations

import socket
import sys
from collections.abc import Callable, Iterable
from itertools import count
from typing import Final

from fairpool_gateway.sfq import Scheduler

TENANTS: Final = (100, 5_000, 100_000)

AT_ONCE: Final = 1_000
"""Decisions for each line that asks for some."""

_FIRST_LATER = 1 << 40

Decide = Callable[[Scheduler[int], int, int], None]


def backlogged(tenants: int) -> Scheduler[int]:
    """A scheduler in which so many tenants wait, with two requests each, costs of 100 to 999 and weights of 1 to 10."""
    numbers = count()
    weights = {f"tenant-{number}": 1 + number % 10 for number in range(tenants)}
    scheduler: Scheduler[int] = Scheduler(lambda request: 100 + request * 7919 % 900, weights=weights)
    for _ in range(2):
        for tenant in weights:
            scheduler.arrive(tenant, next(numbers))
    return scheduler


def decide(scheduler: Scheduler[int], first: int, decisions: int) -> None:
    """Take so many decisions; the requests that arrive meanwhile are numbered from the first on."""
    for request in range(first, first + decisions):
        decision = scheduler.dispatch()
        assert decision is not None
        scheduler.arrive(decision.tenant, request)


def serve(sizes: Iterable[int], decide: Decide = decide) -> None:
    """Take `AT_ONCE` decisions for each line, which says how many tenants are backlogged, and answer it with a line."""
    schedulers, numbers = {tenants: backlogged(tenants) for tenants in sizes}, count(_FIRST_LATER, AT_ONCE)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        print(f"listening on 127.0.0.1:{listening.getsockname()[1]}", flush=True)
        asking, _ = listening.accept()
        with asking, asking.makefile("rw") as lines:
            for line in lines:
                decide(schedulers[int(line)], next(numbers), AT_ONCE)
                lines.write("decided\n")
                lines.flush()


if __name__ == "__main__":
    serve(map(int, sys.argv[1:]))
