"""The C programs of `lab/load`, watched by the compiler's sanitizers where it has them, and what they said."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import json
import subprocess
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any, Final

from support.processes import PATIENCE

from fairpool_lab.bench import compiled
from fairpool_lab.errors import ProcessFailed

SANITIZED: Final = ("-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-fno-omit-frame-pointer")


@functools.cache
def flags() -> tuple[str, ...]:
    """Those of the sanitizers, or of the fast build if this compiler has none."""
    try:
        compiled.program("load", SANITIZED)
    except ProcessFailed:
        return compiled.FAST
    return SANITIZED


def probe() -> Path:
    """The program by which tests reach what both share."""
    return compiled.built(Path(__file__).parents[1] / "lab" / "bench" / "probe.c", flags())


def probed(*arguments: str, given: bytes) -> str:
    """What the probe says of its input."""
    said = subprocess.run([probe(), *arguments], input=given, capture_output=True, timeout=PATIENCE, check=False)
    assert (said.returncode, said.stderr) == (0, b"")
    return said.stdout.decode()


async def load(port: int, *arguments: str) -> dict[str, Any]:
    """What a load saw; its programs complain of nothing."""
    child = await asyncio.create_subprocess_exec(
        str(compiled.program("load", flags())),
        *("--port", str(port), *arguments),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(PATIENCE):
            said, complained = await child.communicate()
    finally:
        if child.returncode is None:
            child.kill()
            await child.wait()
    assert (child.returncode, complained) == (0, b"")
    seen: dict[str, Any] = json.loads(said)
    return seen


def refused(*arguments: str) -> tuple[int, str]:
    """The exit status and the complaint of a load that cannot be."""
    command = [compiled.program("load", flags()), *arguments]
    said = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
    return said.returncode, said.stderr


@contextlib.asynccontextmanager
async def backend() -> AsyncIterator[int]:
    """The endpoint; yields its port. It ends in order and complains of nothing."""
    child = await asyncio.create_subprocess_exec(
        str(compiled.program("backend", flags())), stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    assert child.stdout is not None
    try:
        async with asyncio.timeout(PATIENCE):
            yield int((await child.stdout.readline()).decode().rpartition(":")[2])
        child.terminate()
        _, complained = await child.communicate()
        assert (child.returncode, complained) == (0, b"")
    finally:
        if child.returncode is None:
            child.kill()
            await child.wait()


def question(directory: Path, prompt: str, **fields: Any) -> Sequence[str]:
    """The options of a load that asks this."""
    path = directory / "body.json"
    path.write_text(json.dumps({"model": "sim", "messages": [{"role": "user", "content": prompt}], **fields}))
    return ("--body", str(path))
