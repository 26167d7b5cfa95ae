"""The command `fairpool-gateway`: one pool's gateway from a configuration file, or from a Secret in Kubernetes.

An option that is not known, or whose value is not, ends it, for a person may have mistyped it. Only beside
`--config-secret`, which an operator writes, it is left out and told in the log, without the value: that operator may be
newer, and its pools are served all the same.
"""

from __future__ import annotations

import argparse
import logging
import os
import re
import sys
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Final

from fairpool_gateway import logs
from fairpool_gateway.app.kubernetes import Place
from fairpool_gateway.app.process import Options, run
from fairpool_gateway.configwatch import read
from fairpool_gateway.dispatcher import Request
from fairpool_gateway.errors import CannotStart, ConfigInvalid
from fairpool_gateway.ordering import OrderingFactory
from fairpool_gateway.sfq import Scheduler

EXIT_CANNOT_START, EXIT_CONFIG = 1, 2

log = logging.getLogger(__name__)

_OPTION: Final = re.compile(r"--[a-z][a-z0-9_-]*(?==|\Z)")
_OPERATORS: Final = "--config-secret"
_WHICH_POOL: Final = frozenset({_OPERATORS, "--config"})


def main(arguments: Sequence[str] | None = None, *, ordering: OrderingFactory[Request] = Scheduler) -> int:
    """Run the gateway; returns its exit status: 0, 1 where it cannot start, 2 where its configuration is wrong."""
    parser = _parser()
    parsed, unknown, of_unknown_value = _parsed(parser, sys.argv[1:] if arguments is None else arguments)
    if unknown and parsed.config_secret is None:
        parser.error(f"unrecognized arguments: {' '.join(unknown)}")
    if (wrong := _wrong_together(parsed)) is not None:
        parser.error(wrong)
    logs.set_up(sys.stderr, parsed.log_format, parsed.log_level)
    if unknown:
        log.warning("left out, for this version does not know it: %s", _named(unknown))
    if of_unknown_value:
        log.warning("left out, for this version does not know its value: %s", ", ".join(of_unknown_value))
    path: Path | None = parsed.config
    try:
        config = None if path is None else read(path, strict=True)
        if config is None or not parsed.check:
            run(config, _options(parsed), ordering=ordering)
            return 0
    except CannotStart as problem:
        print(f"fairpool-gateway: {problem}", file=sys.stderr)
        return EXIT_CANNOT_START
    except ConfigInvalid as problem:
        print(f"{path} cannot be used:", file=sys.stderr)
        for line in problem.problems:
            print(f"  {line}", file=sys.stderr)
        return EXIT_CONFIG
    print(f"{path}: good. Pool {config.pool}, {len(config.tenants)} tenants, {len(config.endpoints)} endpoints.")
    return 0


def _parsed(
    parser: argparse.ArgumentParser, arguments: Sequence[str]
) -> tuple[argparse.Namespace, list[str], list[str]]:
    """What was told, the arguments that are not known, and the options that were left out for their values."""
    is_operators = any(argument.partition("=")[0] == _OPERATORS for argument in arguments)
    left_out: list[str] = []
    while True:
        try:
            return *parser.parse_known_args(arguments), left_out
        except argparse.ArgumentError as error:
            names = (error.argument_name or _OPERATORS).split("/")
            if not is_operators or not _WHICH_POOL.isdisjoint(names):
                parser.error(str(error))
            left_out.append(names[0])
            arguments = list(_without(names, arguments))


def _without(names: Collection[str], arguments: Sequence[str]) -> Iterator[str]:
    """The arguments without one option, which has these names, and its values."""
    may_be_value = False
    for argument in arguments:
        is_option = argument.partition("=")[0] in names
        if not is_option and (argument.startswith("-") or not may_be_value):
            yield argument
        may_be_value = argument in names


def _named(unknown: Sequence[str]) -> str:
    """The options among arguments, without their values, which may be secret."""
    return ", ".join(found[0] for argument in unknown if (found := _OPTION.match(argument))) or "what has no name"


def _wrong_together(parsed: argparse.Namespace) -> str | None:
    """What does not go together, if anything."""
    if (parsed.tls_certificate is None) != (parsed.tls_key is None):
        return "--tls-certificate and --tls-key go together"
    if (parsed.pool is None) != (parsed.config_secret is None):
        return "--config-secret and --pool go together: a pool's Secret, and the FairPool to report to"
    if parsed.config_secret is not None and parsed.namespace is None:
        return "--config-secret needs --namespace"
    if parsed.check and parsed.config is None:
        return "--check needs --config"
    return None


def _options(parsed: argparse.Namespace) -> Options:
    return Options(
        config_path=parsed.config,
        place=None
        if parsed.namespace is None
        else Place(parsed.namespace, parsed.kubeconfig, parsed.pool, parsed.config_secret, parsed.pod_uid),
        host=parsed.host,
        port=parsed.port,
        admin_host=parsed.admin_host,
        admin_port=parsed.admin_port,
        decision_log=parsed.decision_log,
        in_pod=parsed.in_pod,
        drain_seconds=parsed.drain_seconds,
        tls=None if parsed.tls_certificate is None else (parsed.tls_certificate, parsed.tls_key),
    )


def _parser() -> argparse.ArgumentParser:
    # Without abbreviations: a newer operator's option may be the beginning of one that means something else here.
    parser = argparse.ArgumentParser(
        prog="fairpool-gateway",
        description="Serve one pool, as its configuration says.",
        allow_abbrev=False,
        exit_on_error=False,
    )
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument("--config", type=Path, metavar="FILE", help="the pool, in YAML or JSON; followed")
    where.add_argument(_OPERATORS, metavar="NAME", help="the Secret where an operator keeps it; followed")
    parser.add_argument("--pool", metavar="NAME", help="the FairPool that is told what this gateway sees")
    parser.add_argument("--namespace", metavar="NAME", help="where in Kubernetes pods, Secret and FairPool are")
    parser.add_argument(
        "--kubeconfig", type=Path, metavar="FILE", help="how to reach the API server (default: as a pod does)"
    )
    parser.add_argument(
        "--pod-uid",
        default=os.environ.get("POD_UID", ""),
        metavar="UID",
        help="which pod this is, for the FairPool's status (default: $POD_UID)",
    )
    parser.add_argument("--check", action="store_true", help="say what is wrong with FILE, and serve nothing")
    parser.add_argument("--host", default="127.0.0.1", help="where tenants connect (default: %(default)s)")
    parser.add_argument("--port", type=int, default=8080, help="0: chosen by the kernel (default: %(default)s)")
    parser.add_argument("--admin-host", default="127.0.0.1", help="where health and metrics are (default: %(default)s)")
    parser.add_argument("--admin-port", type=int, default=8081, help="0: chosen by the kernel (default: %(default)s)")
    parser.add_argument(
        "--tls-certificate", type=Path, metavar="FILE", help="serve tenants over TLS with this chain in PEM; followed"
    )
    parser.add_argument("--tls-key", type=Path, metavar="FILE", help="the certificate's key in PEM; followed")
    parser.add_argument("--decision-log", type=Path, metavar="FILE", help="write every decision there, as JSON lines")
    parser.add_argument("--log-format", choices=("text", "json"), default="text", help="(default: %(default)s)")
    parser.add_argument(
        "--log-level",
        choices=("debug", "info", "warning", "error"),
        default="info",
        help="info tells each refusal too, a flood of them once a second (default: %(default)s)",
    )
    parser.add_argument(
        "--in-pod",
        action=argparse.BooleanOptionalAction,
        default="KUBERNETES_SERVICE_HOST" in os.environ,
        help="on SIGTERM serve on until nothing arrives, as a Service needs it (default: whether Kubernetes runs it)",
    )
    parser.add_argument(
        "--drain-seconds",
        type=int,
        default=600,
        metavar="N",
        help="how long what waits and runs may take to finish at the end (default: %(default)s)",
    )
    return parser
