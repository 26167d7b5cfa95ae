"""The command `fairpool`, the one door to the lab."""

from __future__ import annotations

import argparse
from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command of the lab; returns its exit status."""
    parser = argparse.ArgumentParser(prog="fairpool", description=__doc__)
    parser.add_subparsers(dest="command", required=True)
    parser.parse_args(arguments)
    return 0
