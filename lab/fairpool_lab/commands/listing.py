"""`fairpool lab list`: what the lab's commands can be given, each with where it comes from."""

from __future__ import annotations

import argparse
import sys
from typing import Final

import msgspec
from rich import box
from rich.console import Console
from rich.table import Table

from fairpool_lab import traces
from fairpool_lab.comparison import engines
from fairpool_lab.policies import POLICIES
from fairpool_lab.simulation import ESTIMATORS

EXCERPT_SOURCE: Final = (
    "the default: four minutes of the VTC paper's artifact's trace (github.com/Ying1123/VTC-artifact)"
)

_PLAIN_WIDTH = 160
"""Columns, where the output is no terminal that has a width."""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's options: there is one."""
    parser.add_argument("--json", action="store_true", help="print them as one JSON object instead")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Print them."""
    lists = {
        "policies": [(listed.usage, listed.source) for listed in POLICIES.values()],
        "engines": list(engines.listed()),
        "estimators": [(name, estimating.source) for name, estimating in ESTIMATORS.items()],
        "traces": [(traces.EXCERPT.name, EXCERPT_SOURCE), *traces.FORMATS],
    }
    if options.json:
        told = {kind: [{"name": name, "source": source} for name, source in found] for kind, found in lists.items()}
        sys.stdout.write(msgspec.json.encode(told).decode() + "\n")
        return 0
    console = Console(width=None if sys.stdout.isatty() else _PLAIN_WIDTH, highlight=False)
    for kind, found in lists.items():
        shown = Table(kind, "source", box=box.SIMPLE_HEAD, pad_edge=False)
        for name, source in found:
            shown.add_row(name, source)
        console.print(shown, markup=False)
    return 0
