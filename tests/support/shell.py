"""A shell in a scratch checkout, into which the commands of a page are typed one block after the other."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shlex
import shutil
import signal
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from support.pages import ROOT, blocks, pages

_DONE: Final = "== done =="
_IGNORED: Final = shutil.ignore_patterns(
    ".git", *(line.rstrip("/") for line in (ROOT / ".gitignore").read_text(encoding="utf-8").split())
)

PATIENCE: Final = 180.0
"""Seconds that a block may take."""


class CommandFailed(Exception):
    """A command of a block ended with another status than 0; says what all of it said."""


class Shell:
    """`await shell.run(block.text)`; variables and the directory stay from block to block."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    async def run(self, text: str) -> str:
        """Type it, wait for its end; returns what was printed.

        Raises:
            CommandFailed: the shell ended, as it does with the first command that fails.
        """
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(f"{text}\nprintf '\\n%s\\n' '{_DONE}'\n".encode())
        await self._process.stdin.drain()
        said: list[str] = []
        async with asyncio.timeout(PATIENCE):
            while line := (await self._process.stdout.readline()).decode():
                if line.rstrip("\n") == _DONE:
                    return "".join(said)
                said.append(line)
        raise CommandFailed("".join(said) or "nothing was said")


def checkout(directory: Path) -> Path:
    """A copy of the project there, with the files that its pages say to write."""
    shutil.copytree(ROOT, directory, ignore=_IGNORED, symlinks=True)
    for block in (block for page in pages() for block in blocks(page)):
        if block.file is not None:
            (directory / block.file).parent.mkdir(exist_ok=True)
            (directory / block.file).write_text(block.text, encoding="utf-8")
    return directory


def kubectl_command(directory: Path, command: Sequence[str]) -> Path:
    """A new directory with kubectl as a command of its own, which may be a part of a larger program."""
    directory.mkdir()
    kubectl = directory / "kubectl"
    kubectl.write_text(f'#!/bin/sh\nexec {shlex.join(command)} "$@"\n', encoding="utf-8")
    kubectl.chmod(0o755)
    return directory


@asynccontextmanager
async def shell(
    directory: Path, programs: Path, environment: Mapping[str, str], within: Sequence[str] = ()
) -> AsyncIterator[Shell]:
    """A shell that stops at the first failure and finds the project's commands and `programs`; `within` starts it."""
    path = os.pathsep.join([str(programs), str(Path(sys.executable).parent), os.environ["PATH"]])
    process = await asyncio.create_subprocess_exec(
        *(*within, "bash", "-euo", "pipefail", "-s"),
        cwd=directory,
        env={"HOME": str(directory), "PATH": path, "LANG": "C.UTF-8", **environment},
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        yield Shell(process)
    finally:
        if process.returncode is None:
            assert process.stdin
            process.stdin.close()
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
