"""The keys that have to be looked at, so that a burst of events costs one look and a failing key harms no other.

What always holds: a key is in here at most once, and no key is handed out while it is being worked on: what happens
to it meanwhile brings it back afterwards, once. A key that failed waits for a time that doubles with each failure in
a row; an event about it does not wait, for it may be the remedy.

`Schedule` is the pure part, which is told the time; `WorkQueue` puts it on the event loop.
"""

from __future__ import annotations

import asyncio
import heapq
import random
from collections.abc import Callable, Hashable
from itertools import count
from typing import Final, Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)

FIRST_DELAY: Final = 0.5
MOST_DELAY: Final = 60.0
"""Seconds that a key waits after its first failure, and at most."""


class Schedule(Generic[Key]):
    """When each key is due. Times are in seconds, on a clock that never goes back."""

    def __init__(self) -> None:
        self._due: dict[Key, float] = {}
        self._heap: list[tuple[float, int, Key]] = []
        self._order = count()
        self._worked_on: set[Key] = set()
        self._failures: dict[Key, int] = {}

    def __len__(self) -> int:
        return len(self._due)

    def add(self, key: Key, at: float) -> None:
        """Have a key looked at when it is this late; a sooner time that was set before stays."""
        if key not in self._due or at < self._due[key]:
            self._due[key] = at
            heapq.heappush(self._heap, (at, next(self._order), key))

    def take(self, now: float) -> Key | None:
        """The key that has been due for longest, to be worked on until `done`; None if none is due."""
        blocked = []
        taken = None
        while taken is None and self._heap and self._heap[0][0] <= now:
            entry = heapq.heappop(self._heap)
            at, _, key = entry
            if self._due.get(key) != at:
                continue  # set to another time since
            if key in self._worked_on:
                blocked.append(entry)
                continue
            del self._due[key]
            self._worked_on.add(key)
            taken = key
        for entry in blocked:
            heapq.heappush(self._heap, entry)
        return taken

    def is_due(self, key: Key, now: float) -> bool:
        """Whether a key is to be looked at now, also if it is being worked on."""
        return key in self._due and self._due[key] <= now

    def done(self, key: Key, now: float, *, failed: bool, spread: float = 0.0) -> None:
        """A key has been worked on; `spread`, from 0 up to 1, is how much of a third of its delay is taken off."""
        self._worked_on.discard(key)
        if not failed:
            self._failures.pop(key, None)
            return
        failures = self._failures[key] = self._failures.get(key, 0) + 1
        delay = min(FIRST_DELAY * 2.0 ** min(failures - 1, 32), MOST_DELAY)
        self.add(key, now + delay * (1 - spread / 3))

    def next_due(self) -> float | None:
        """When a key that nobody works on is due next; None if there is none."""
        return min((at for key, at in self._due.items() if key not in self._worked_on), default=None)


class WorkQueue(Generic[Key]):
    """A schedule on the event loop, for any number of workers. To be made on the loop that it is used on."""

    def __init__(self, *, chance: Callable[[], float] = random.random) -> None:
        self._schedule = Schedule[Key]()
        self._loop = asyncio.get_running_loop()
        self._changed = asyncio.Event()
        self._closed = False
        self._chance = chance

    def __len__(self) -> int:
        return len(self._schedule)

    def add(self, key: Key, *, after: float = 0.0) -> None:
        """Have a key looked at, now or in so many seconds."""
        self._schedule.add(key, self._loop.time() + after)
        self._changed.set()

    def is_due(self, key: Key) -> bool:
        """Whether a key is to be looked at now, also if it is being worked on."""
        return self._schedule.is_due(key, self._loop.time())

    async def take(self) -> Key | None:
        """Wait for a key that is due; None once the queue is closed."""
        while not self._closed:
            key = self._schedule.take(self._loop.time())
            if key is not None:
                return key
            self._changed.clear()
            due = self._schedule.next_due()
            try:
                async with asyncio.timeout_at(due):
                    await self._changed.wait()
            except TimeoutError:
                continue
        return None

    def done(self, key: Key, *, failed: bool) -> None:
        """A key that was taken has been worked on; one that failed comes back later."""
        self._schedule.done(key, self._loop.time(), failed=failed, spread=self._chance())
        self._changed.set()

    def close(self) -> None:
        """Hand out nothing more."""
        self._closed = True
        self._changed.set()
