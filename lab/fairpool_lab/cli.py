"""The command `fairpool`, the one door to the lab.

Each command is a module of `commands`: `HELP` says what it is for, `configure(parser)` adds its options and sets the
default `run`, a function from the parsed options to the exit status; `command` among them is what was typed. What was
given and cannot be used ends with one line and status 2, as argparse itself does it; a command that a signal ends, with
128 and the signal's number.
"""

from __future__ import annotations

import argparse
import shlex
import signal
import sys
from collections.abc import Sequence

from fairpool_lab.commands import calibrate, compare, demo, gap, listing, report, run, study, up, what_if
from fairpool_lab.errors import Interrupted, LabError


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns its exit status."""
    given = sys.argv[1:] if arguments is None else arguments
    options = _parser().parse_args(given)
    options.command = shlex.join(("fairpool", *given))
    try:
        status: int = options.run(options)
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    except LabError as error:
        print(f"fairpool: {error}", file=sys.stderr)
        return error.status if isinstance(error, Interrupted) else 2
    return status


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="fairpool", description="The laboratory of FairPool.")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    demo.configure(commands.add_parser("demo", help=demo.HELP, description=demo.__doc__))
    up.configure(commands.add_parser("up", help=up.HELP, description=up.__doc__))
    lab = commands.add_parser("lab", help="measure fairness").add_subparsers(metavar="COMMAND", required=True)
    run.configure(lab.add_parser("run", help=run.HELP, description=run.__doc__))
    compare.configure(lab.add_parser("compare", help=compare.HELP, description=compare.__doc__))
    calibrate.configure(lab.add_parser("calibrate", help=calibrate.HELP, description=calibrate.__doc__))
    what_if.configure(lab.add_parser("what-if", help=what_if.HELP, description=what_if.__doc__))
    listing.configure(lab.add_parser("list", help=listing.HELP, description=listing.HELP))
    gap.configure(lab.add_parser("gap", help=gap.HELP, description=gap.HELP))
    study.configure(lab.add_parser("study", help=study.HELP, description=study.__doc__))
    report.configure(lab.add_parser("report", help=report.HELP, description=report.__doc__))
    return parser
