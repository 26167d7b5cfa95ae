"""Tells when files have changed, whoever edits them and however.

They are read several times a second rather than watched: that is true on every file system, of files that are renamed
over others and of directories that are made again, and costs nothing that could be felt. What always holds: a content
counts once it has stayed for a moment, for a file that is written in several steps may be valid after each.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import Final

from fairpool_operator.errors import CannotStart
from fairpool_operator.manifests import files_in

_EVERY: Final = 0.2
_SETTLE: Final = 0.1
_REST: Final = 10
"""How many times as long as a look took nothing is done after it: for directories with thousands of files."""

Seen = dict[Path, bytes | str] | str


class Followed:
    """Files and directories. What is in them when this is made is known."""

    def __init__(self, paths: Sequence[Path]) -> None:
        self._paths = paths
        self._known = _look(paths)

    async def changed(self) -> None:
        """Wait until they hold something else than is known, and know it."""
        while True:
            begun = time.monotonic()
            found = await asyncio.to_thread(_look, self._paths)
            if found != self._known:
                await self._settle(found)
                return
            await asyncio.sleep(max(_EVERY, _REST * (time.monotonic() - begun)))

    async def _settle(self, found: Seen) -> None:
        before: Seen | None = None
        while found != before:
            await asyncio.sleep(_SETTLE)
            before, found = found, await asyncio.to_thread(_look, self._paths)
        self._known = found


def _look(paths: Sequence[Path]) -> Seen:
    try:
        return {file: _content(file) for file in files_in(paths)}
    except CannotStart as problem:
        return str(problem)


def _content(file: Path) -> bytes | str:
    try:
        return sha256(file.read_bytes()).digest()
    except OSError as error:
        return str(error.strerror)
