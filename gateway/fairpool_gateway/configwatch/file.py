"""Follows a configuration file, so that an edit is in force at once and a broken one changes nothing.

Editors write a file in place or rename another over it; a kubelet swaps a symlink that the path leads through; whole
directories are removed and made again. All of this is seen in the directories of the path and of the file that it
leads to, so these are watched, not the file. A watch misses what happens while it is made, and some file systems
tell nothing: so the file is read every second as well, whether or not anything was seen.

What always holds: each content that stays is judged once, in order. It is applied, or it is refused and the last good
one stays in force, and the same is true of a file that is gone or cannot be read.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

from watchfiles import Change, awatch

from fairpool_gateway.config import PoolConfig, load
from fairpool_gateway.errors import ConfigInvalid

_READ_EVERY: Final = 1.0
_SETTLE: Final = 0.05
"""A content counts once it has stayed for this long: a file written in several steps may be valid after each."""
_GATHER: Final = 0.5
"""How long changes are gathered at most before the file is read."""


def read(path: Path, *, strict: bool) -> PoolConfig:
    """The configuration in a file; `strict` as for `config.load`.

    Raises:
        ConfigInvalid: the file cannot be read, or what is in it cannot be used.
    """
    return _judge(_content(path), path, strict=strict)


async def follow(
    path: Path,
    *,
    applied: Callable[[PoolConfig], None],
    refused: Callable[[ConfigInvalid], None],
    current: PoolConfig | None = None,
    strict: bool = False,
    stop: asyncio.Event | None = None,
) -> None:
    """Follow a file until cancelled or told to stop.

    Args:
        path: the file; it need not exist yet.
        applied: called with each configuration that differs from the one in force, and with the one in force once
            the file holds it again after something was refused.
        refused: called with the reasons, once, when the content cannot be used or the file cannot be read.
        current: the configuration in force, if any.
        strict: whether unknown fields are refused.
        stop: ends the following when set; set by this function too when it is cancelled.
    """
    stop = stop or asyncio.Event()
    follower = Follower(path, applied=applied, refused=refused, current=current, strict=strict)
    while not stop.is_set():
        place = await follower.look()
        async with contextlib.aclosing(_wakings(place, stop)) as wakings:
            async for _ in wakings:
                if await follower.look() != place:
                    break


@dataclass(frozen=True, slots=True)
class Place:
    """Where a file is: what its path leads to, and the directories on the way that have to be watched.

    Directories go with their inodes, for one that was made again is another one. Of a directory that does not exist,
    the nearest above it is taken.
    """

    names: frozenset[str]
    directories: frozenset[tuple[Path, int]]

    @classmethod
    def of(cls, path: Path) -> Self:
        """The place of this file, whether it exists or not."""
        paths = {path.absolute(), Path(os.path.realpath(path))}
        return cls(
            frozenset(each.name for each in paths),
            frozenset(_existing(each.parent) for each in paths),
        )

    def concerns(self, change: Change, path: str) -> bool:
        """Whether a change may be about this file: all but what is written into its neighbours."""
        return change is not Change.modified or Path(path).name in self.names


class Follower:
    """Judges a file each time it is told to look, and remembers what it saw. Arguments as for `follow`."""

    def __init__(
        self,
        path: Path,
        *,
        applied: Callable[[PoolConfig], None],
        refused: Callable[[ConfigInvalid], None],
        current: PoolConfig | None = None,
        strict: bool = False,
    ) -> None:
        self._path = path
        self._applied = applied
        self._refused = refused
        self._current = current
        self._strict = strict
        self._seen: bytes | str | None = None
        self._refusing = False

    async def look(self) -> Place:
        """Judge the file's content if it is another than before; returns where the file is now."""
        place, content = await self._read()
        while content != self._seen:
            await asyncio.sleep(_SETTLE)
            before, (place, content) = content, await self._read()
            if content == before:
                self._seen = content
                await self._consider(content)
        return place

    async def _read(self) -> tuple[Place, bytes | str]:
        return await asyncio.to_thread(lambda: (Place.of(self._path), _content(self._path)))

    async def _consider(self, content: bytes | str) -> None:
        try:
            config = await asyncio.to_thread(_judge, content, self._path, strict=self._strict)
        except ConfigInvalid as problem:
            self._refusing = True
            self._refused(problem)
            return
        if config != self._current or self._refusing:
            self._current = config
            self._refusing = False
            self._applied(config)


async def _wakings(place: Place, stop: asyncio.Event) -> AsyncGenerator[None]:
    """Wakes its reader when the file may have changed, and every second; ends when stopped or when watching fails."""
    changes = awatch(
        *(directory for directory, _ in place.directories),
        watch_filter=place.concerns,
        debounce=int(_GATHER * 1000),
        step=int(_SETTLE * 1000),
        stop_event=stop,
        rust_timeout=int(_READ_EVERY * 1000),
        yield_on_timeout=True,
        recursive=False,
    )
    try:
        async with contextlib.aclosing(changes):
            async for _ in changes:
                yield
    except (OSError, RuntimeError):  # a directory went away meanwhile, or the kernel has no watches left
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(stop.wait(), _READ_EVERY)


def _existing(directory: Path) -> tuple[Path, int]:
    try:
        return directory, directory.stat().st_ino
    except OSError:
        return _existing(directory.parent)


def _content(path: Path) -> bytes | str:
    """The bytes in a file, or why there are none."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return "there is no such file"
    except OSError as error:
        return f"cannot be read: {error.strerror}"


def _judge(content: bytes | str, path: Path, *, strict: bool) -> PoolConfig:
    if isinstance(content, str):
        raise ConfigInvalid([f"{path}: {content}"])
    try:
        text = content.decode()
    except UnicodeDecodeError:
        raise ConfigInvalid([f"{path}: is not a text in UTF-8"]) from None
    return load(text, source=str(path), strict=strict)
