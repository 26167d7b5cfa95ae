"""Tells when files have changed, whoever edits them and however.

They are read several times a second rather than watched: that is true on every file system, of files that are renamed
over others and of directories that are made again, and costs nothing that could be felt. What always holds: a content
counts once it has stayed for a moment, for a file that is written in several steps may be valid after each, and for
longer where a file was emptied, as `decrypt x > keys.yaml` does long before it writes; and what counts is that content,
not what the files hold when somebody comes to read them.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from fairpool_operator.errors import CannotStart
from fairpool_operator.manifests import Contents, contents_of

_EVERY: Final = 0.2
_SETTLE: Final = 0.1
_LOOKS_IF_EMPTIED: Final = 30
"""How many times as long it has to stay where a file was emptied."""
_REST: Final = 10
"""How many times as long as a look took nothing is done after it: for directories with thousands of files."""

Seen = Contents | str
"""What is in the files, or why nobody can say."""


class Followed:
    """Files and directories, of which some contents are known."""

    def __init__(self, paths: Sequence[Path], known: Contents) -> None:
        self._paths = paths
        self._known: Seen = known

    async def changed(self) -> Contents:
        """Wait until they hold something else than is known; returns it, and knows it.

        Raises:
            CannotStart: what changed is that nobody can say any more; that is known then.
        """
        while True:
            begun = time.monotonic()
            found = await asyncio.to_thread(_look, self._paths)
            if found != self._known:
                self._known = await self._settled(found)
                if isinstance(self._known, str):
                    raise CannotStart(self._known)
                return self._known
            await asyncio.sleep(max(_EVERY, _REST * (time.monotonic() - begun)))

    async def _settled(self, found: Seen) -> Seen:
        looks = 0
        while looks < (_LOOKS_IF_EMPTIED if _is_emptied(found, self._known) else 1):
            await asyncio.sleep(_SETTLE)
            before, found = found, await asyncio.to_thread(_look, self._paths)
            looks = looks + 1 if found == before else 0
        return found


def _is_emptied(found: Seen, known: Seen) -> bool:
    """Whether there is a file in which there is nothing any more."""
    if isinstance(found, str) or isinstance(known, str):
        return False
    return any(not content and known.get(file) for file, content in found.items())


def _look(paths: Sequence[Path]) -> Seen:
    try:
        return contents_of(paths)
    except CannotStart as problem:
        return str(problem)
