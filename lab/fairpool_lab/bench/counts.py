"""`make bench-counts`: the instructions of one request's way through the gateway, and of the scheduler's decisions.

Counts tell in half a minute, and beside any other load, what seconds tell on an idle machine only. They are those of
one build of Python, for which they were recorded with `make bench-counts RECORD=1`; how they grow with the tenants that
wait is compared everywhere. Exit status 1 if any is more than `TOLERANCE` times what was recorded, or grows beyond its
bound; 2 if nothing could be counted.

The request is that of workload (a), one after another on one connection, everything on: keys of all tenants, order,
usage reading, metrics.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import platform
import re
import sys
import tempfile
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

import msgspec
from rich import box
from rich.console import Console
from rich.table import Table

from fairpool_lab.bench import backlog, compiled, scheduler, unhurried
from fairpool_lab.bench.callgrind import counting
from fairpool_lab.bench.subjects import IN_A_POD, TENANTS, key_of
from fairpool_lab.bench.workloads import SIXTY_FOUR
from fairpool_lab.errors import FileInvalid, Interrupted, LabError, OutputInvalid, ProcessFailed
from fairpool_lab.processes import Program, run, running

RECORDED: Final = Path(__file__).with_name("counted.json")
TOLERANCE: Final = 1.05
"""By how much a count may be more. That of a request repeats within 0.2 %, those of decisions within 0.1 %."""

BUILD: Final = f"{platform.python_implementation()} {platform.python_version()}, {platform.machine()}"
REQUEST: Final = "a request"

_REQUESTS = 100
_ROWS = 2
_LENGTH = re.compile(rb"^content-length: (\d+)", re.IGNORECASE | re.MULTILINE)
_LISTENS = re.compile(r"listening on 127\.0\.0\.1:(\d+)")

Counts = dict[str, float]
"""Instructions of a piece of work, by what it is."""


def decision(tenants: int) -> str:
    """What a decision is called, with so many tenants backlogged."""
    return f"a decision, {tenants:,} tenants backlogged"


def worse(counts: Counts, recorded: Mapping[str, float]) -> list[str]:
    """What costs more than it did, or grows more than it may, a sentence each."""
    sentences = [
        f"{name}: {counts[name]:,.0f} instructions, and {before:,.0f} were recorded"
        for name, before in recorded.items()
        if counts[name] > TOLERANCE * before
    ]
    fewest, *_, most = map(decision, backlog.TENANTS)
    if counts[most] > scheduler.MOST_SLOWER * counts[fewest]:
        sentences.append(f"{most}: {counts[most] / counts[fewest]:.1f} times that with the fewest")
    return sentences


async def counted(directory: Path) -> Counts:
    """Count everything."""
    requests, decisions = await asyncio.gather(of_requests(directory), of_decisions(directory))
    return requests | decisions


async def of_requests(directory: Path, program: Sequence[str] = ("-m", unhurried.__name__)) -> Counts:
    """Of one request's whole way through the gateway and back."""
    endpoint = Program("endpoint", [str(compiled.program("backend"))], _LISTENS, directory / "endpoint.log")
    async with (
        running(endpoint) as (there,),
        counting("gateway", [sys.executable, *program, there[1]], _LISTENS, directory, environment=IN_A_POD) as (
            counter,
            here,
        ),
        _connected(int(here[1])) as (reader, writer),
    ):

        async def ask() -> None:
            for number in range(_REQUESTS):
                writer.write(_request(number % TENANTS))
                head = await reader.readuntil(b"\r\n\r\n")
                if not head.startswith(b"HTTP/1.1 200 "):
                    raise ProcessFailed(f"the gateway refused a request: {head.decode()}")
                (length,) = _LENGTH.findall(head)
                await reader.readexactly(int(length))

        await ask()  # Connections are made with the first ones, and Python learns what to expect.
        return {REQUEST: await counter.least(ask, _ROWS) / _REQUESTS}


async def of_decisions(
    directory: Path, program: Sequence[str] = ("-m", backlog.__name__), sizes: Iterable[int] = backlog.TENANTS
) -> Counts:
    """Of one decision, and the arrival of another request, with so many tenants backlogged."""
    command, counts = [sys.executable, *program, *map(str, sizes)], {}
    async with (
        counting("scheduler", command, _LISTENS, directory) as (counter, here),
        _connected(int(here[1])) as (reader, writer),
    ):
        for tenants in sizes:

            async def decide(tenants: int = tenants) -> None:
                writer.write(b"%d\n" % tenants)
                await reader.readline()

            await decide()  # Python learns with the first ones what to expect.
            counts[decision(tenants)] = await counter.least(decide, times=1) / backlog.AT_ONCE
    return counts


@contextlib.asynccontextmanager
async def _connected(port: int) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        yield reader, writer
    finally:
        writer.close()
        await writer.wait_closed()


def _request(tenant: int) -> bytes:
    body = SIXTY_FOUR.body().encode()
    head = (
        "POST /v1/chat/completions HTTP/1.1",
        "host: gateway",
        f"authorization: Bearer {key_of(tenant)}",
        "content-type: application/json",
        f"content-length: {len(body)}",
    )
    return "\r\n".join((*head, "", "")).encode() + body


def read(path: Path = RECORDED) -> dict[str, Counts]:
    """What was recorded, by the build of Python."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=dict[str, Counts])
    except (OSError, msgspec.MsgspecError) as error:
        raise FileInvalid(str(path), None, f"is no record of counts: {error}") from error


def record(counts: Counts, path: Path = RECORDED) -> None:
    """Take what was counted as what is to be kept, for this build of Python."""
    recorded = read(path) | {BUILD: {name: round(value) for name, value in counts.items()}}
    try:
        path.write_bytes(msgspec.json.format(msgspec.json.encode(recorded), indent=2) + b"\n")
    except OSError as error:
        raise OutputInvalid(f"{path} cannot be written: {error.strerror}") from error


def main(arguments: Sequence[str] | None = None) -> int:
    """Count, compare and print; returns the exit status."""
    parser = argparse.ArgumentParser(prog="make bench-counts", description="Count the gateway's instructions.")
    parser.add_argument("--record", action="store_true", help="keep the counts as those to compare with from now on")
    options, console = parser.parse_args(arguments), Console()
    try:
        with tempfile.TemporaryDirectory() as directory:
            counts = run(counted(Path(directory)))
        if options.record:
            record(counts)
        recorded = read().get(BUILD, {})
    except Interrupted as error:
        return error.status
    except LabError as error:
        console.print(f"bench-counts: {error}", style="red", markup=False)
        return 2
    console.print(_table(counts, recorded))
    if not recorded:
        console.print(f"Nothing was recorded for {BUILD}: make bench-counts RECORD=1 does.", style="yellow")
    wrong = worse(counts, recorded)
    for line in wrong:
        console.print(line, style="red", markup=False)
    if wrong:
        console.print("Find what does the work (callgrind_annotate), or record what is worth it: RECORD=1", style="red")
    return 1 if wrong else 0


def _table(counts: Counts, recorded: Counts) -> Table:
    shown = Table(box=box.SIMPLE_HEAD, pad_edge=False, title=f"Instructions, {BUILD}", title_justify="left")
    shown.add_column("")
    for column in ("counted", "recorded", "ratio"):
        shown.add_column(column, justify="right", no_wrap=True)
    for name, value in counts.items():
        before = recorded.get(name)
        cells = ("not yet", "") if before is None else (f"{before:,.0f}", f"{value / before:.3f}")
        shown.add_row(name, f"{value:,.0f}", *cells)
    return shown


if __name__ == "__main__":
    sys.exit(main())
