"""Counting the instructions of a program with valgrind's callgrind: time is nobody's on a busy machine, work is.

The program starts some ten times slower than by itself. Only from `counting` on it is counted, fifty times slower, and
for each piece of work from a moment in which it waits to the next. What always holds: what it does before, between and
after those pieces is in no figure, and neither is what the kernel or another process does for it.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import subprocess
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

from fairpool_lab.bench.machine import tool
from fairpool_lab.errors import ProcessFailed
from fairpool_lab.processes import Program, running

_START_SECONDS: Final = 180.0
_NUMBER: Final = re.compile(r"^==(\d+)==", re.MULTILINE)
_TOTAL: Final = re.compile(r"^totals: (\d+)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Counter:
    """A program whose work can be counted, `process` by its number."""

    process: int
    directory: Path

    async def least(self, work: Callable[[], Coroutine[Any, Any, None]], times: int) -> int:
        """The instructions of some work, which is done so often; the least, for nothing that comes between is of it."""
        return min([await self._count(work) for _ in range(times)])

    async def _count(self, work: Callable[[], Coroutine[Any, Any, None]]) -> int:
        await self.tell("zero")
        await work()
        before = set(self.directory.iterdir())
        await self.tell("dump")
        (written,) = set(self.directory.iterdir()) - before
        return int(_TOTAL.findall(written.read_text(encoding="utf-8"))[0])

    async def tell(self, *words: str) -> None:
        """Give callgrind an order; it is carried out once the program waits or goes on."""
        command = [str(tool("vgdb", "valgrind")), f"--pid={self.process}", *words]
        order = partial(subprocess.run, command, capture_output=True, text=True, check=False, timeout=_START_SECONDS)
        said = await asyncio.to_thread(order)
        if said.returncode:
            raise ProcessFailed(f"callgrind cannot be told to {' '.join(words)}: {said.stderr}")


@contextlib.asynccontextmanager
async def counting(
    name: str,
    command: Sequence[str],
    announces: re.Pattern[str],
    directory: Path,
    environment: Sequence[str] = (),
) -> AsyncIterator[tuple[Counter, re.Match[str]]]:
    """A program that is counted from now on, and the match of its announcement; with variables, as `NAME=VALUE`.

    Raises:
        MachineLacks: there is no valgrind.
        ProcessFailed: it did not start, or ended too early.
    """
    own, log = directory / f"counts of {name}", directory / f"{name}.log"
    own.mkdir()
    # A set of strings is walked in another order in each process, unless hashes are always the same.
    variables = ["env", "PYTHONHASHSEED=0", *environment]
    callgrind = [*variables, str(tool("valgrind", "valgrind")), "--tool=callgrind", "--instr-atstart=no"]
    program = Program(
        name,
        [*callgrind, f"--callgrind-out-file={own / 'count'}", *command],
        announces,
        log,
        start_seconds=_START_SECONDS,
        stop_seconds=_START_SECONDS,
    )
    async with running(program) as (announced,):
        (number,) = set(_NUMBER.findall(log.read_text(encoding="utf-8")))
        counter = Counter(int(number), own)
        await counter.tell("instrumentation", "on")
        yield counter, announced
