"""The command `fairpool-operator`."""

from __future__ import annotations

import argparse
import asyncio
import os
import socket
import sys
import uuid
from collections.abc import Sequence
from pathlib import Path

from fairpool_gateway import logs
from fairpool_operator.errors import CannotStart
from fairpool_operator.options import Options
from fairpool_operator.validate import command as validate

EXIT_CANNOT_START = 1
_OWN_NAMESPACE = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns its exit status."""
    parsed = _parser().parse_args(arguments)
    status: int = parsed.run(parsed)
    return status


def _run(parsed: argparse.Namespace) -> int:
    """Run the operator; returns its exit status: 0, or 1 where it cannot start."""
    # Here, for it takes a second to load, and another command needs none of it.
    from fairpool_operator.operation import operate  # noqa: PLC0415

    logs.set_up(sys.stderr, parsed.log_format, parsed.log_level, quiet=["kopf"])
    try:
        asyncio.run(operate(_options(parsed)))
    except CannotStart as problem:
        print(f"fairpool-operator: {problem}", file=sys.stderr)
        return EXIT_CANNOT_START
    return 0


def _options(parsed: argparse.Namespace) -> Options:
    return Options(
        gateway_image=parsed.gateway_image,
        own_namespace=parsed.own_namespace or _own_namespace(),
        identity=parsed.identity or f"{socket.gethostname()}_{uuid.uuid4().hex[:8]}",
        namespaces=tuple(parsed.namespace or ()),
        image_pull_policy=parsed.image_pull_policy,
        kubeconfig=parsed.kubeconfig,
        host=parsed.host,
        port=parsed.port,
        lease_seconds=parsed.lease_seconds,
        list_seconds=parsed.list_seconds,
        workers=parsed.workers,
    )


def _own_namespace() -> str:
    try:
        return _OWN_NAMESPACE.read_text(encoding="utf-8").strip()
    except OSError:
        raise CannotStart("this is no pod: say with --own-namespace where the Lease is to be") from None


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="fairpool-operator", description="One gateway for each FairPool.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    run = commands.add_parser("run", help="watch FairPools and TenantWeights, and keep their gateways")
    run.set_defaults(run=_run)
    image = os.environ.get("FAIRPOOL_GATEWAY_IMAGE")
    run.add_argument(
        "--gateway-image",
        default=image,
        required=image is None,
        metavar="IMAGE",
        help="what gateways run (default: $FAIRPOOL_GATEWAY_IMAGE)",
    )
    run.add_argument(
        "--image-pull-policy",
        choices=("Always", "IfNotPresent", "Never"),
        help="when nodes fetch it (default: as Kubernetes does)",
    )
    run.add_argument(
        "--namespace", action="append", metavar="NAME", help="look there only; may be given again (default: everywhere)"
    )
    run.add_argument(
        "--own-namespace",
        default=os.environ.get("POD_NAMESPACE"),
        metavar="NAME",
        help="where the Lease is (default: $POD_NAMESPACE, or that of this pod)",
    )
    run.add_argument("--identity", default=os.environ.get("POD_NAME"), help="this process, in the Lease")
    run.add_argument("--kubeconfig", type=Path, metavar="FILE", help="how to reach the API (default: as a pod does)")
    run.add_argument("--host", default="127.0.0.1", help="where health and metrics are (default: %(default)s)")
    run.add_argument("--port", type=int, default=8081, help="0: chosen by the kernel (default: %(default)s)")
    run.add_argument(
        "--lease-seconds",
        type=float,
        default=15.0,
        metavar="N",
        help="after which silence another takes over (default: %(default)s)",
    )
    run.add_argument(
        "--list-seconds",
        type=float,
        default=180.0,
        metavar="N",
        help="how often all is listed afresh, for what watches missed (default: %(default)s)",
    )
    run.add_argument(
        "--workers", type=int, default=4, metavar="N", help="pools looked at at once (default: %(default)s)"
    )
    run.add_argument("--log-format", choices=("text", "json"), default="text", help="(default: %(default)s)")
    run.add_argument(
        "--log-level", choices=("debug", "info", "warning", "error"), default="info", help="(default: %(default)s)"
    )
    validate.configure(commands.add_parser("validate", help=validate.HELP, description=validate.__doc__))
    return parser
