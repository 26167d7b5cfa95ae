"""`fairpool lab calibrate FILE`: what tokens should weigh, and what should estimate costs, from one's own traffic.

The weights follow from the times that a gateway's decision log tells; other traces tell none. The estimators are tried
on the trace in a simulated pool, learning as in service. Exit status 2: something that was given cannot be used.
"""

from __future__ import annotations

import argparse
import sys

from fairpool_lab.commands import comparing
from fairpool_lab.comparison import proposal, setup


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    comparing.add_demand(parser, must_be_given=True)
    pool = comparing.add_pool(parser)
    pool.add_argument("--slots", type=int, metavar="N", help="requests that each may have (default: the engine's)")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Fit, try, and propose."""
    path, trace, _, engine = comparing.demand_of(options)
    chosen = setup.Setup(
        trace=trace,
        engine=engine,
        endpoints=options.endpoints,
        slots=engine.slots if options.slots is None else options.slots,
        weights={},
        estimator="oracle",
        seed=options.seed,
        speed=options.speed,
        leaves_after=options.leave_after,
        block_tokens=options.prefix_cache,
    )
    found = proposal.propose(path, chosen)
    if options.json:
        sys.stdout.write(found.as_json() + "\n")
        return 0
    console = comparing.console()
    for shown in found.shown():
        console.print(shown)
    return 0
