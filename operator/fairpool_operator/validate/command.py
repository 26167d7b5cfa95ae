"""`fairpool-operator validate`: resources in files, checked as a pull request is, with no cluster.

It ends with 0 where all is valid, 1 where something is not, and 2 where it could not look.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import re
import sys
from collections.abc import Iterator
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from fairpool_operator.errors import CannotStart
from fairpool_operator.validate.findings import Finding, Report, Severity

HELP: Final = "check FairPools and TenantWeights in files, as the API server and the operator would"

_NAMESPACE: Final = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")

EXIT_INVALID: Final = 1
EXIT_CANNOT_LOOK: Final = 2


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument(
        "-f",
        "--filename",
        action="append",
        required=True,
        type=path,
        metavar="PATH",
        help="a file, a directory (every .yaml and .yml below it) or - for the standard input; may be given again",
    )
    parser.add_argument(
        "-n",
        "--namespace",
        default="default",
        type=namespace,
        metavar="NAME",
        help="where resources that name no namespace are (default: %(default)s)",
    )
    parser.add_argument(
        "-o", "--output", choices=("text", "json"), default="text", help="how findings are told (default: %(default)s)"
    )
    parser.add_argument(
        "--strict", action="store_true", help="take warnings, of what is in none of the files, for errors"
    )
    parser.set_defaults(run=run)


def path(given: str) -> Path:
    """A path; an empty one would be the directory that one happens to be in."""
    if not given:
        raise argparse.ArgumentTypeError("the path is empty: is a variable unset?")
    return Path(given)


def namespace(given: str) -> str:
    """A namespace; what none can be called would be told as the fault of every resource."""
    if not _NAMESPACE.fullmatch(given):
        raise argparse.ArgumentTypeError(f"no namespace can be called {given!r}: is a variable unset?")
    return given


def run(parsed: argparse.Namespace) -> int:
    """Check files; returns the exit status."""
    try:
        report = _report(parsed.filename, parsed.namespace)
    except CannotStart as problem:
        print(f"fairpool-operator validate: {problem}", file=sys.stderr)
        return EXIT_CANNOT_LOOK
    lines = _as_json(report) if parsed.output == "json" else _as_text(report)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # names may hold what the terminal cannot show
    try:
        print("\n".join(lines), flush=True)
    except OSError as error:
        _say_no_more()
        print(f"fairpool-operator validate: what was found cannot be printed: {error.strerror}", file=sys.stderr)
        return EXIT_CANNOT_LOOK
    counted = len(report.findings) if parsed.strict else report.count(Severity.ERROR)
    return EXIT_INVALID if counted else 0


def _say_no_more() -> None:
    """Have nothing written to the standard output again at the exit, where it would fail again."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)


def _report(paths: list[Path], namespace: str) -> Report:
    # Here, for other commands need none of it, and what this one needs may not be installed.
    try:
        from fairpool_operator.manifests import read  # noqa: PLC0415
        from fairpool_operator.validate.documents import validate  # noqa: PLC0415
    except ModuleNotFoundError as missing:
        if missing.name is None or not missing.name.startswith("cel_expr_python"):
            raise
        raise CannotStart("this needs a library for CEL: pip install '.[validate]' in a checkout") from None
    manifests = read(paths)
    if not manifests.files:
        raise CannotStart(f"there is no .yaml or .yml file in {', '.join(map(str, paths))}")
    if not (manifests.documents or manifests.problems):
        raise CannotStart(f"there is no resource in {', '.join(map(str, paths))}")
    return validate(manifests, namespace, datetime.now(UTC))


def _as_text(report: Report) -> Iterator[str]:
    for each in report.findings:
        yield f"{each.file}:{each.line}: " + ": ".join(
            filter(None, (_severity(each), _resource(each), each.path, each.message))
        )
    yield (
        f"{_number(report.resources, 'resource')} in {_number(report.files, 'file')}: "
        f"{_number(report.count(Severity.ERROR), 'error')}, {_number(report.count(Severity.WARNING), 'warning')}"
    )


def _severity(finding: Finding) -> str:
    return "" if finding.severity is Severity.ERROR else finding.severity


def _resource(finding: Finding) -> str:
    name = f"{finding.namespace}/{finding.name}" if finding.namespace else finding.name
    return finding.kind and f"{finding.kind} {name}"


def _number(count: int, of: str) -> str:
    return f"{count} {of}" if count == 1 else f"{count} {of}s"


def _as_json(report: Report) -> Iterator[str]:
    found = [{**asdict(each), "file": str(each.file)} for each in report.findings]
    counts = {
        "files": report.files,
        "resources": report.resources,
        "otherResources": report.others,
        "errors": report.count(Severity.ERROR),
        "warnings": report.count(Severity.WARNING),
    }
    yield json.dumps({"findings": found, "counts": counts}, indent=2, ensure_ascii=False)
