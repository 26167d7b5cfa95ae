"""Keeps a copy of some Kubernetes objects, so that what was deleted is never believed to be there for long.

A watch tells of changes within milliseconds, but it may lose some, fall silent, or be cut. So it is never trusted for
long: it ends after half a minute at most, whatever comes, and then everything is listed anew, from no cache. What
always holds: a fresh list replaces all that was known; an object that is not in it is gone; of two objects of one name
only the later is there; whoever is told of a copy and fails at that is told of it again. While nothing can be listed,
what was known last stays, and `problem` says so.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
from collections.abc import Callable, Mapping
from typing import Final, Generic

from fairpool_gateway.cluster.objects import Change, Source, T
from fairpool_gateway.errors import ClusterError, ClusterExpired

log = logging.getLogger(__name__)

RELIST_SECONDS: Final = 30.0
"""How long a watch is believed, give or take a fifth."""
_FIRST_PAUSE: Final = 0.2
_LONGEST_PAUSE: Final = 5.0
_LASTED: Final = 5.0
"""A watch that lasted for so long was no failure, however it ended."""


class Mirror(Generic[T]):
    """A copy of what a source has, from `follow` on.

    Args:
        source: what is copied.
        name: what this is called in the log.
        changed: called with all objects, by name, whenever one has changed; with the first list in any case.
        relist_seconds: how long a watch is believed.
        chance: a number from 0 up to 1, so that many gateways do not ask together.
    """

    def __init__(
        self,
        source: Source[T],
        name: str,
        changed: Callable[[Mapping[str, T]], None],
        *,
        relist_seconds: float = RELIST_SECONDS,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self.problem: str | None = "has not been listed yet"
        self._source = source
        self._name = name
        self._changed = changed
        self._relist_seconds = relist_seconds
        self._chance = chance
        self._objects: dict[str, T] | None = None
        self._failures = 0
        self._has_no_list = True

    @property
    def has_listed(self) -> bool:
        """Whether it ever had everything."""
        return self._objects is not None

    async def follow(self) -> None:
        """Keep the copy true until cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            began = loop.time()
            due = began + self._relist_seconds * (0.8 + 0.4 * self._chance())
            try:
                await self._watch(await self._list(), due)
            except ClusterExpired as expired:
                if self._has_no_list:
                    self._fail(f"its lists are too old before they end: {expired}")
                else:
                    log.info("the watch of %s is too old to go on: everything is listed anew", self._name)
            except ClusterError as problem:
                self._fail(str(problem))
            except Exception:
                log.exception("a fault of the gateway ended the watch of %s", self._name)
                self._fail("a fault of the gateway, which the log describes")
            if loop.time() >= min(due, began + _LASTED):
                self._failures = 0
            if loop.time() < due:
                await asyncio.sleep(self._pause())

    async def _list(self) -> str:
        """Copy everything; returns the version from which to watch."""
        try:
            listed, version = await self._source.list()
            self._replace({each.metadata.name: each for each in listed})
        except Exception:
            self._has_no_list = True
            raise
        if self._has_no_list:
            # Only then: what keeps a watch from being made is no better for a list.
            self._has_no_list = False
            self._succeed()
        return version

    async def _watch(self, version: str, due: float) -> None:
        loop = asyncio.get_running_loop()
        async with contextlib.aclosing(self._source.watch(version, max(0.0, due - loop.time()))) as changes:
            async for change in changes:
                if change is None:
                    self._succeed()
                else:
                    self._note(change)

    def _replace(self, objects: dict[str, T]) -> None:
        if objects != self._objects:
            self._changed(objects)
        self._objects = objects

    def _note(self, change: Change[T]) -> None:
        objects, seen = dict(self._objects or {}), change.object
        name = seen.metadata.name
        if not change.gone:
            objects[name] = seen
        elif name in objects and objects[name].metadata.uid == seen.metadata.uid:
            del objects[name]
        self._replace(objects)

    def _pause(self) -> float:
        """How long to wait before the next try: longer each time, and never the same."""
        longest = min(_LONGEST_PAUSE, _FIRST_PAUSE * 2.0**self._failures)
        self._failures += 1
        return longest * (0.5 + 0.5 * self._chance())

    def _fail(self, problem: str) -> None:
        if problem != self.problem:
            log.warning("%s cannot be followed, what was seen last stays in force: %s", self._name, problem)
        self.problem = problem

    def _succeed(self) -> None:
        if self.problem is not None:
            log.info("%s are followed" if self._name.endswith("s") else "%s is followed", self._name)
        self.problem = None
