"""`fairpool up -f DIR`: the pools of these resources on this machine, with no cluster.

Reads the same YAML as a cluster (FairPool, TenantWeight, and the Secrets that they name), and serves each pool by a
gateway of its own, in front of engines that run already (--endpoint URL) or are simulated (--simulate N). Edits are
followed. Exit status 1: something that it had started ended by itself; 2: it could not start; 128 and more: a signal
ended it, and everything that it had started.
"""

from __future__ import annotations

import argparse
import os
import sys

from fairpool_lab.errors import OptionInvalid, ProcessFailed
from fairpool_lab.processes import run as run_processes
from fairpool_lab.up.endpoints import given
from fairpool_lab.up.programs import Ports
from fairpool_lab.up.session import Options, Session
from fairpool_operator.validate.command import namespace, path


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    parser.add_argument(
        "-f", "--filename", action="append", required=True, type=path, metavar="PATH", dest="paths",
        help="a file, or a directory whose .yaml and .yml files are read; - is the standard input; may be given again",
    )  # fmt: skip
    parser.add_argument(
        "--endpoint",
        action="append",
        default=[],
        metavar="[POOL=]URL",
        help="an engine that runs, such as http://127.0.0.1:8000; may be given again",
    )
    parser.add_argument(
        "--simulate", type=int, metavar="N", help="N simulated engines, for each pool without an --endpoint"
    )
    parser.add_argument(
        "-n",
        "--namespace",
        default="default",
        type=namespace,
        metavar="NAME",
        help="that of resources that name none (default: %(default)s)",
    )
    parser.add_argument("--host", default="127.0.0.1", help="where tenants connect (default: %(default)s)")
    parser.add_argument(
        "--port",
        type=int,
        default=8080,
        metavar="N",
        help="the first pool's, and the next one's for each further; 0: chosen by the kernel (default: %(default)s)",
    )
    parser.add_argument(
        "--admin-port",
        type=int,
        default=9080,
        metavar="N",
        help="the same for health, metrics and debug, on loopback only (default: %(default)s)",
    )
    parser.add_argument(
        "--state", type=path, metavar="DIR", help="where configurations and logs go (default: they are gone in the end)"
    )
    parser.add_argument(
        "--drain-seconds",
        type=int,
        default=30,
        metavar="N",
        help="how long what waits and runs may take to finish in the end (default: %(default)s)",
    )
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Serve until a signal comes; returns the exit status."""
    for option, port in (("--port", options.port), ("--admin-port", options.admin_port)):
        if not 0 <= port <= 65_000:
            raise OptionInvalid(f"{option}: must be a number from 0 to 65000")
    if not 0 <= options.drain_seconds <= 3600:
        raise OptionInvalid("--drain-seconds: must be a number from 0 to 3600")
    session = Session(
        Options(
            paths=tuple(options.paths),
            given=given(options.endpoint, options.simulate),
            first=Ports(options.host, options.port, options.admin_port),
            namespace=options.namespace,
            state=options.state,
            drain_seconds=options.drain_seconds,
        ),
        say,
    )
    try:
        run_processes(session.run(), again=session.hurry)
    except ProcessFailed as problem:
        say(f"fairpool: {problem}")
        return 1
    return 0


def say(line: str) -> None:
    """A line for whoever started it, at once even where it goes to a file; if nobody reads it, all goes on."""
    try:
        print(line, flush=True)
    except OSError:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
