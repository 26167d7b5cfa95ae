"""Child processes that announce where they listen, are missed when they end, and never outlive the command.

Each child has a session of its own, so that Ctrl-C reaches the parent only, which then ends all of them: first SIGTERM,
then, for a child that does not go or where there is no more time, SIGKILL. If the parent itself is killed, the kernel
tells the children (`tied`). A child that ends before it is told to ends the block it was started for. What a child
prints goes to a file, as far as there is room for it.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import signal
import sys
from collections import deque
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

from fairpool_lab import tied
from fairpool_lab.errors import Interrupted, LabError, OutputInvalid, ProcessFailed

_LAST_LINES = 5

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Program:
    """What to run.

    Attributes:
        name: what to call it in messages.
        command: the program and its arguments.
        announces: matches a line of its output once it serves.
        output: the file for all that it prints.
        heard: called with each line of it too.
        start_seconds: how long it may take to announce itself.
        stop_seconds: how long its end may take once it was told to.
    """

    name: str
    command: Sequence[str]
    announces: re.Pattern[str]
    output: Path
    heard: Callable[[str], None] | None = None
    start_seconds: float = 30.0
    stop_seconds: float = 5.0


def run(main: Coroutine[Any, Any, T], *, again: Callable[[], None] | None = None) -> T:
    """`asyncio.run`, but SIGTERM and the end of the terminal cancel the coroutine as Ctrl-C does, and once only.

    Of those that come after that, `again` is told.

    Raises:
        Interrupted: one of these signals came, and the coroutine has ended.
    """
    return asyncio.run(_until_signalled(main, again))


@contextlib.asynccontextmanager
async def running(*programs: Program) -> AsyncIterator[list[re.Match[str]]]:
    """Run programs side by side until the block ends; yields the match of each one's announcement.

    Whoever is cancelled while they end does not wait for them any longer: they are killed.

    Raises:
        ProcessFailed: one did not start, or ended before the block did, which is then cancelled.
    """
    try:
        async with asyncio.TaskGroup() as watching:
            children: list[_Child] = []
            try:
                for program in programs:
                    children.append(child := _Child(program, await _spawn(program)))
                    watching.create_task(child.watch())
                yield [await child.announced for child in children]
            finally:
                await _end(children)
    except ExceptionGroup as failures:
        if failures.split(LabError)[1] is not None:
            raise
        raise failures.exceptions[0] from None


async def _end(children: Sequence[_Child]) -> None:
    for child in children:
        child.tell()
    try:
        await asyncio.gather(*(child.end() for child in children))
    except asyncio.CancelledError:
        await asyncio.gather(*(child.kill() for child in children))
        raise


class _Child:
    """One running program."""

    def __init__(self, program: Program, process: asyncio.subprocess.Process) -> None:
        self.announced: asyncio.Future[re.Match[str]] = asyncio.get_running_loop().create_future()
        self._program = program
        self._process = process
        self._last = deque[str](maxlen=_LAST_LINES)
        self._copying = asyncio.create_task(self._copy())
        self._ending = False

    async def watch(self) -> None:
        """Follow it to its end, which is a failure unless `end` was called before."""
        within = self._program.start_seconds
        await asyncio.wait((self._copying, self.announced), timeout=within, return_when=asyncio.FIRST_COMPLETED)
        if not (self._copying.done() or self.announced.done()):
            raise ProcessFailed(f"{self._program.name} did not start within {within:g} s", self._quoted())
        await asyncio.wait((self._copying,))
        self._copying.result()
        status = await self._process.wait()
        if not self._ending:
            how = f"by {signal.Signals(-status).name}" if status < 0 else f"with status {status}"
            when = "while it was needed" if self.announced.done() else "before it served anything"
            raise ProcessFailed(f"{self._program.name} ended {how} {when}", self._quoted())

    def tell(self) -> None:
        """Tell it to end, if it did not end by itself."""
        self._ending = True
        if self._process.returncode is None:
            self._process.terminate()

    async def end(self) -> None:
        """Wait for the end of one that was told to, for as long as it may take."""
        try:
            async with asyncio.timeout(self._program.stop_seconds):
                await self._gone()
        except TimeoutError:
            await self.kill()

    async def kill(self) -> None:
        """End it, and what it started, at once."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        await self._gone()

    async def _gone(self) -> None:
        """It has ended, and all that it printed is in its file."""
        await asyncio.wait((self._copying,))
        await self._process.wait()

    async def _copy(self) -> None:
        try:
            with self._program.output.open("wb", buffering=0) as file:
                await self._copy_to(file)
        except OSError as error:
            raise OutputInvalid(f"{self._program.output} cannot be written: {error.strerror}") from error

    async def _copy_to(self, file: BinaryIO) -> None:
        assert self._process.stdout is not None
        async for raw in self._process.stdout:
            line = raw.decode(errors="replace")
            with contextlib.suppress(OSError):  # a full disk ends nothing that runs
                file.write(raw)
            self._last.append(line)
            if self._program.heard is not None:
                self._program.heard(line)
            match = self._program.announces.search(line)
            if match and not self.announced.done():
                self.announced.set_result(match)

    def _quoted(self) -> str:
        return f"; it said last:\n{''.join(self._last)}" if self._last else ", and said nothing"


async def _spawn(program: Program) -> asyncio.subprocess.Process:
    try:
        return await asyncio.create_subprocess_exec(
            *(sys.executable, "-I", "-S", tied.__file__, str(os.getpid()), signal.SIGTERM.name),
            *program.command,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            start_new_session=True,
        )
    except OSError as error:
        raise ProcessFailed(f"{program.name} cannot be started: {error.strerror}") from error


async def _until_signalled(main: Coroutine[Any, Any, T], again: Callable[[], None] | None) -> T:
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None
    received: list[int] = []

    def interrupt(number: int) -> None:
        if not received:
            task.cancel()
        elif again is not None:
            again()
        received.append(number)

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, interrupt, number)
    try:
        return await main
    except asyncio.CancelledError:
        if received:
            raise Interrupted(received[0]) from None
        raise
