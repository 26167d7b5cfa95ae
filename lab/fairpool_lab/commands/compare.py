"""`fairpool lab compare`: every policy of the lab on one trace, side by side.

As `fairpool lab run` with all policies, and one table in which each has a row. Exit status 0: all ran; 2: something
that was given cannot be used.
"""

from __future__ import annotations

import argparse

from fairpool_lab.commands import comparing
from fairpool_lab.comparison import tables
from fairpool_lab.policies import POLICIES


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    comparing.add_options(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Run all, measure, and print one table."""
    performed = comparing.perform(options, tuple(POLICIES))
    if performed is not None:
        performed.console.print(performed.about, markup=False)
        performed.console.print(tables.of_policies(performed.outcomes, performed.console))
    return 0
