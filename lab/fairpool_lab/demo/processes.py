"""Child processes that announce where they listen, and that end with their parent, whatever ends it.

Each child has a session of its own, so that Ctrl-C reaches the parent only, which then ends them in order: first
SIGTERM, then, for a child that does not go, SIGKILL. What a child prints goes to a file.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

from fairpool_lab.errors import ProcessFailed

_START_SECONDS = 30.0
_STOP_SECONDS = 5.0
_LAST_LINES = 5


@contextlib.asynccontextmanager
async def running(command: Sequence[str], *, announces: re.Pattern[str], output: Path) -> AsyncIterator[re.Match[str]]:
    """Run a command until the block ends; yields the match of the first line of its output that `announces`.

    Raises:
        ProcessFailed: it ended, or took too long, before it announced itself; quotes its last lines.
    """
    child = await asyncio.create_subprocess_exec(
        *command,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        start_new_session=True,
    )
    announced: asyncio.Future[re.Match[str]] = asyncio.get_running_loop().create_future()
    copying = asyncio.create_task(_copy(child, announces, output, announced))
    try:
        async with asyncio.timeout(_START_SECONDS):
            match = await announced
        yield match
    except TimeoutError:
        if announced.done() and not announced.cancelled():
            raise
        raise ProcessFailed(f"{command[0]} did not start within {_START_SECONDS:g} s; see {output}") from None
    finally:
        await _end(child)
        await copying


async def _copy(
    child: asyncio.subprocess.Process,
    announces: re.Pattern[str],
    output: Path,
    announced: asyncio.Future[re.Match[str]],
) -> None:
    assert child.stdout is not None
    last: list[str] = []
    with output.open("w", encoding="utf-8") as file:
        async for raw in child.stdout:
            line = raw.decode(errors="replace")
            file.write(line)
            file.flush()
            last = [*last, line][-_LAST_LINES:]
            match = announces.search(line)
            if match and not announced.done():
                announced.set_result(match)
    if not announced.done():
        announced.set_exception(ProcessFailed(f"a process ended before it served anything:\n{''.join(last)}"))


async def _end(child: asyncio.subprocess.Process) -> None:
    if child.returncode is not None:
        return
    child.terminate()
    try:
        async with asyncio.timeout(_STOP_SECONDS):
            await child.wait()
    except TimeoutError:
        child.kill()
        await child.wait()
