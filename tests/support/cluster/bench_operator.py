"""`make bench-operator`: one operator, started cold on a real API server, with many pools and tenants.

Its times are those of the whole machine: etcd, the API server and the operator share it. Exit status 1 if the operator
takes more memory than it may, or if an edit of a weight writes more than the Secret, its tenant's status and its
pool's.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from rich import box
from rich.console import Console
from rich.table import Table
from support.cluster.client import running_client
from support.cluster.control_plane import ControlPlane
from support.cluster.definitions import install
from support.cluster.operating import Operator, install_operator
from support.cluster.programs import Programs
from support.cluster.scale import Edit, Size, edit, peak_megabytes, populate, settled

MOST_MEGABYTES = 200
WRITES_OF_AN_EDIT = 3
EDITS = 5
_NAMESPACE = "many"
_LEASE_SECONDS, _LIST_SECONDS = 15.0, 180.0
"""As an operator has them unless told otherwise."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; returns the exit status."""
    parser = argparse.ArgumentParser(prog="make bench-operator", description="Measure an operator of many pools.")
    parser.add_argument("--pools", type=int, default=500)
    parser.add_argument("--tenants-each", type=int, default=4)
    parser.add_argument("--rest-seconds", type=float, default=_LIST_SECONDS, help="how long calls at rest are counted")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as directory:
        plane = ControlPlane(Programs.find(), Path(directory))
        try:
            plane.start()
            size = Size(options.pools, options.tenants_each)
            return asyncio.run(_measure(plane, Path(directory), size, options.rest_seconds))
        finally:
            plane.close()


async def _measure(plane: ControlPlane, directory: Path, size: Size, rest_seconds: float) -> int:
    console = Console()
    async with running_client(plane.access) as admin:
        await install(admin)
        await admin.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": _NAMESPACE}})
        access = await install_operator(admin, plane.access, _NAMESPACE, everywhere=True)
        with console.status(f"Making {size.pools:,} pools and {size.tenants:,} tenants"):
            began = time.monotonic()
            await populate(admin, _NAMESPACE, size)
            made = time.monotonic() - began
        times = ("--lease-seconds", str(_LEASE_SECONDS), "--list-seconds", str(_LIST_SECONDS))
        operator = Operator(access, _NAMESPACE, directory, *times, identity="operator")
        began = time.monotonic()
        operator.start()
        try:
            with console.status("Reconciling all from cold"):
                started = time.monotonic() - began
                cold = started + await settled(admin, operator, _NAMESPACE, size, within=1800.0)
            before = await operator.numbers()
            with console.status(f"At rest for {rest_seconds:g} s"):
                await asyncio.sleep(rest_seconds)
            after = await operator.numbers()
            edits = [
                await edit(admin, operator, _NAMESPACE, number * size.pools // EDITS, 500 + number)
                for number in range(EDITS)
            ]
            peak = peak_megabytes(operator.pid)
        finally:
            operator.stop()
    console.print(_table(size, made, cold, before, after, rest_seconds, edits, peak))
    return 0 if peak < MOST_MEGABYTES and all(each.writes == WRITES_OF_AN_EDIT for each in edits) else 1


def _table(
    size: Size,
    made: float,
    cold: float,
    before: dict[str, float],
    after: dict[str, float],
    rest: float,
    edits: Sequence[Edit],
    peak: float,
) -> Table:
    def per_minute(name: str) -> str:
        return f"{(after[name] - before[name]) * 60 / rest:.1f}"

    seconds = sorted(each.seconds for each in edits)
    table = Table(box=box.SIMPLE, title=f"{size.pools:,} pools, {size.tenants:,} tenants")
    table.add_column("what")
    table.add_column("figure", justify="right")
    for what, figure in (
        ("made by the test, to compare with", f"{made:.1f} s"),
        ("all reconciled, from the operator's start", f"{cold:.1f} s"),
        ("API calls for that", f"{before['api_calls_total']:,.0f}"),
        ("looks at a pool for that", f"{before['reconciles_total.done']:,.0f}"),
        ("the operator's time for a look, calls included", f"{_look(before) * 1000:.0f} ms"),
        ("API calls per minute at rest", per_minute("api_calls_total")),
        ("writes per minute at rest, but for the Lease", per_minute("api_writes_total")),
        ("objects written by a weight edit", " ".join(f"{each.writes:.0f}" for each in edits)),
        ("from a weight edit to its Secret, median", f"{seconds[len(seconds) // 2] * 1000:.0f} ms"),
        ("peak memory", f"{peak:.0f} MB (under {MOST_MEGABYTES} is promised)"),
    ):
        table.add_row(what, figure)
    return table


def _look(numbers: dict[str, float]) -> float:
    return numbers["reconcile_seconds_sum"] / numbers["reconcile_seconds_count"]


if __name__ == "__main__":
    sys.exit(main())
