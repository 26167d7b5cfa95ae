"""`fairpool lab what-if`: a trace under the pool of YAML files and under an edited copy, and who gains and who loses.

Weights, slots, queue bounds, costs, suspension and estimators are the pools' own, and so is the order, fair queueing.
Requests of tenants that a pool does not know are left out of its side. Exit status 2: something that was given cannot
be used.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import msgspec
from rich.console import Console

from fairpool_lab.commands import comparing
from fairpool_lab.comparison import gains, pools, runs, setup


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    parser.add_argument(
        "-f", "--filename", nargs="+", required=True, type=Path, metavar="PATH", dest="paths", help="the pool as it is"
    )
    parser.add_argument(
        "--edited", nargs="+", required=True, type=Path, metavar="PATH", help="the same files, edited: as it would be"
    )
    comparing.add_demand(parser)
    comparing.add_pool(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Run both, and print what becomes of every tenant."""
    path, trace, _, engine = comparing.demand_of(options)
    outcomes, said = [], []
    for side, paths in (("as it is", options.paths), ("edited", options.edited)):
        pool = pools.in_files(paths)
        admitted = pools.admitted(trace, pool)
        chosen = setup.of_pool(
            pool,
            admitted,
            engine,
            endpoints=options.endpoints,
            seed=options.seed,
            speed=options.speed,
            leaves_after=options.leave_after,
            block_tokens=options.prefix_cache,
        )
        (result,) = runs.of_each(setup.policies(["sfq"]), chosen, Console(stderr=True))
        outcomes.append(result.outcome)
        said.append(f"Pool {pool.pool}, {side}: {runs.about(path.name, chosen)}.")
        if unknown := sorted({request.tenant for request in trace} - {request.tenant for request in admitted}):
            said.append(f"It does not know {', '.join(unknown)}, whose requests are left out.")
    found = gains.changes(*outcomes)
    if options.json:
        told = {"trace": str(path), "before": outcomes[0], "after": outcomes[1]}
        sys.stdout.write(msgspec.json.encode(told).decode() + "\n")
        return 0
    console = comparing.console()
    for line in said:
        console.print(line, markup=False)
    console.print(gains.table(found))
    for line in gains.verdict(found):
        console.print(line, markup=False)
    return 0
