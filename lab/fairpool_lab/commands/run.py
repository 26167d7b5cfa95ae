"""`fairpool lab run`: a trace under one policy after another, on a simulated pool, and what each tenant got.

The pool is the product's own dispatcher, admission, placement and cost estimates on fake time; its engines are models.
`fairpool lab list` names what can be chosen. Exit status 0: all ran; 2: something that was given cannot be used.
"""

from __future__ import annotations

import argparse

from fairpool_lab.commands import comparing
from fairpool_lab.comparison import tables


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    default = ["arrival-order", "sfq"]
    parser.add_argument(
        "--policy", nargs="+", default=default, metavar="P", help="the orders to run (default: arrival-order sfq)"
    )
    comparing.add_options(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Run, measure, and print a table for each policy and one of all."""
    performed = comparing.perform(options, options.policy)
    if performed is None:
        return 0
    performed.console.print(performed.about, markup=False)
    for outcome in performed.outcomes:
        performed.console.print(tables.of_tenants(outcome, performed.console))
    performed.console.print(tables.of_policies(performed.outcomes, performed.console))
    return 0
