"""The command `fairpool`, the one door to the lab.

Each command is a module of `commands`, loaded only when it is asked for: some take a second, and need what may not be
installed. `configure(parser)` adds its options and sets the default `run`, a function from the parsed options to the
exit status; `command` among them is what was typed. What was given and cannot be used ends with one line and status 2,
as argparse itself does it; a command that a signal ends, with 128 and the signal's number.
"""

from __future__ import annotations

import argparse
import importlib
import shlex
import signal
import sys
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from fairpool_lab.errors import Interrupted, LabError, MachineLacks


class _Command(NamedTuple):
    """A module of `commands`, and in a few words what it is for."""

    module: str
    purpose: str


_COMMANDS: Final[Mapping[tuple[str, ...], _Command]] = {
    ("demo",): _Command("demo", "real traffic through the real gateway, once in arrival order and once fair"),
    ("up",): _Command("up", "serve the pools of YAML files on this machine, with no cluster"),
    ("lab", "run"): _Command("run", "run a trace under one policy after another, on a simulated pool"),
    ("lab", "compare"): _Command("compare", "set every policy side by side on one trace"),
    ("lab", "calibrate"): _Command("calibrate", "propose what tokens weigh and what estimates costs, from a trace"),
    ("lab", "what-if"): _Command("what_if", "who gains and who loses by an edit of a pool's files"),
    ("lab", "list"): _Command(
        "listing", "name the policies, engines, estimators and formats of traces, each with its source"
    ),
    ("lab", "gap"): _Command(
        "gap", "the greatest gap between backlogged tenants against its bound, over all intervals of a decision log"
    ),
    ("lab", "study"): _Command("study", "answer a question about orders of requests, as a page with its figures"),
    ("lab", "report"): _Command("report", "what gateways decided, from their decision logs, as one page with charts"),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns its exit status."""
    given = sys.argv[1:] if arguments is None else arguments
    try:
        options = _parser(given).parse_args(given)
        options.command = shlex.join(("fairpool", *given))
        status: int = options.run(options)
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    except LabError as error:
        print(f"fairpool: {error}", file=sys.stderr)
        return error.status if isinstance(error, Interrupted) else 2
    return status


def _parser(given: Sequence[str]) -> argparse.ArgumentParser:
    """What `fairpool` understands; of the commands, only the one that is given knows its options."""
    parser = argparse.ArgumentParser(prog="fairpool", description="The laboratory of FairPool.")
    groups = {"": parser.add_subparsers(metavar="COMMAND", required=True)}
    for name, command in _COMMANDS.items():
        group = name[0] if len(name) > 1 else ""
        if group not in groups:
            made = groups[""].add_parser(group, help="measure fairness")
            groups[group] = made.add_subparsers(metavar="COMMAND", required=True)
        made = groups[group].add_parser(name[-1], help=command.purpose)
        if tuple(given[: len(name)]) == name:
            loaded = _loaded(command)
            made.description = loaded.__doc__
            loaded.configure(made)
    return parser


def _loaded(command: _Command) -> Any:
    """A command's module.

    Raises:
        MachineLacks: it needs a library that is not installed.
    """
    try:
        return importlib.import_module(f"fairpool_lab.commands.{command.module}")
    except ModuleNotFoundError as missing:
        name = (missing.name or "").partition(".")[0]
        if not name or name.startswith("fairpool"):
            raise
        raise MachineLacks(f"this needs the library {name}: pip install '.[lab]' in a checkout") from None
