"""`fairpool demo`: real traffic through the real gateway, once in arrival order and once fair.

Starts the gateway and four simulated engines as processes of their own on loopback, replays the busiest four minutes of
a real trace through the official client, and compares. The pool and its tenants are resources in YAML, as a cluster has
them, beside `demo/scenario.py`. Exit status 0: the verdict holds; 1: it does not; 2: it could
not be had; 128 and more: a signal ended it. No process is left behind in any case.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from fairpool_lab import traces
from fairpool_lab.demo import scenario, show


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    parser.add_argument("--out", type=Path, default=Path("out/demo"), metavar="DIR", help="where logs and picture go")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Run both orders and compare; returns the exit status."""
    chosen = scenario.of_trace(traces.read(traces.EXCERPT))
    return show.demonstrate(chosen, options.out, show.terminal())
