"""What the commands share that compare policies: their options, and how they are carried out.

`perform` reads the trace, runs every policy and writes what goes to files or to programs; what people see is each
command's own.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from rich.console import Console

from fairpool_lab import report, traces
from fairpool_lab.comparison import demand, engines, runs, setup
from fairpool_lab.comparison.engines import Chosen
from fairpool_lab.comparison.outcome import Outcome
from fairpool_lab.traces import Trace

_PLAIN_WIDTH = 160
"""Columns, where the output is no terminal that has a width."""


class Demand(NamedTuple):
    """A trace: its file, its requests, how many were left out as too long for the engine, and that engine."""

    path: Path
    trace: Trace
    left_out: int
    engine: Chosen


class Performed(NamedTuple):
    """What was compared, in words, each policy's figures, and where they are shown."""

    about: str
    outcomes: tuple[Outcome, ...]
    console: Console


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add all options but that of the policies."""
    add_demand(parser)
    pool = add_pool(parser)
    pool.add_argument("--slots", type=int, metavar="N", help="requests that each may have (default: the engine's)")
    pool.add_argument(
        "--weights",
        metavar="W",
        help="TENANT=WEIGHT,… or `ranked`: 4, 2, 1 in turn, the heaviest first (default: equal)",
    )
    pool.add_argument(
        "--estimator", default="TenantAverage", metavar="X", help="what estimates costs (default: %(default)s)"
    )
    parser.add_argument(
        "--html", type=Path, metavar="FILE", help="write a page with charts, too, that needs nothing else"
    )


def add_demand(parser: argparse.ArgumentParser, *, must_be_given: bool = False) -> None:
    """Add the options that say what is asked for, and how it is told; `must_be_given`: the trace is no option then."""
    demand = parser.add_argument_group("demand")
    if must_be_given:
        demand.add_argument("trace", type=Path, metavar="FILE", help="who asks for what, and when")
    else:
        demand.add_argument(
            "--trace", type=Path, metavar="FILE", help="who asks for what, and when (default: the excerpt)"
        )
    demand.add_argument(
        "--columns", metavar="NAMES", help="what its columns are called, as in tenant=user,arrival=time"
    )
    demand.add_argument(
        "--tenant-in-id",
        metavar="REGEX",
        help="finds the tenant in requests' ids, in its first group: for logs of vLLM",
    )
    demand.add_argument("--deal", type=int, metavar="N", help="a trace that names no tenants is dealt to N")
    demand.add_argument("--speed", type=float, default=1.0, metavar="X", help="play it X times as fast (default: 1)")
    demand.add_argument("--leave-after", type=float, metavar="SECONDS", help="clients leave after so long")
    demand.add_argument("--drop-longer", action="store_true", help="leave out requests that the engine cannot hold")
    parser.add_argument("--seed", type=int, default=0, metavar="S", help="what chance follows from (default: 0)")
    parser.add_argument("--json", action="store_true", help="print all figures as one JSON object instead")


def add_pool(parser: argparse.ArgumentParser) -> argparse._ArgumentGroup:
    """Add the options that say what serves it."""
    pool = parser.add_argument_group("pool")
    pool.add_argument("--engine", default="a10g", metavar="E", help="what the endpoints are (default: %(default)s)")
    pool.add_argument("--endpoints", type=int, default=1, metavar="N", help="how many (default: %(default)s)")
    pool.add_argument("--prefix-cache", type=int, metavar="TOKENS", help="they cache prompts' blocks of so many tokens")
    return pool


def demand_of(options: argparse.Namespace) -> Demand:
    """Read the trace, and leave out what does not fit if that is wanted."""
    path = options.trace or traces.EXCERPT
    engine = engines.named(options.engine)
    whole = demand.read(
        path, columns=options.columns, tenant_in_id=options.tenant_in_id, deal=options.deal, seed=options.seed
    )
    trace = whole
    if options.drop_longer:
        trace = tuple(request for request in whole if setup.Setup.fits(engine, request))
    return Demand(path, trace, len(whole) - len(trace), engine)


def console() -> Console:
    """Where people read: as wide as their terminal, or wide enough for the tables."""
    return Console(width=None if sys.stdout.isatty() else _PLAIN_WIDTH, highlight=False)


def perform(options: argparse.Namespace, policies: Sequence[str]) -> Performed | None:
    """Run, measure, and write the page if one is wanted; None where all was printed as JSON."""
    path, trace, left_out, engine = demand_of(options)
    chosen = setup.Setup(
        trace=trace,
        engine=engine,
        endpoints=options.endpoints,
        slots=engine.slots if options.slots is None else options.slots,
        weights=setup.weights(options.weights, trace),
        estimator=options.estimator,
        seed=options.seed,
        speed=options.speed,
        leaves_after=options.leave_after,
        block_tokens=options.prefix_cache,
    )
    wanted = setup.policies(list(policies))
    results = runs.of_each(wanted, chosen, Console(stderr=True), draw=options.html is not None)
    outcomes = tuple(result.outcome for result in results)
    if options.html is not None:
        drawn = [result.drawn for result in results if result.drawn is not None]
        report.write(options.html, runs.report(path.name, options.command, chosen, drawn))
    if options.json:
        sys.stdout.write(runs.as_json(str(path), chosen, outcomes, left_out=left_out) + "\n")
        return None
    said = f", {left_out:,} left out" if left_out else ""
    return Performed(f"{runs.about(path.name, chosen)}{said}.\n", outcomes, console())
