"""The keys that have to be looked at, so that a burst of events costs one look and a failing key harms no other.

What always holds: a key is in here at most once, and no key is handed out while it is being worked on: what happens
to it meanwhile brings it back afterwards, once. A key that failed waits for a time that doubles with each failure in
a row; an event about it does not wait, for it may be the remedy. Of the keys that took long to fail the last time no
more than half of the workers work on at once, so that the others are there for all else.

`Schedule` is the pure part, which is told the time; `WorkQueue` puts it on the event loop.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Hashable
from typing import Final, Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)

FIRST_DELAY: Final = 0.5
MOST_DELAY: Final = 60.0
"""Seconds that a key waits after its first failure, and at most."""
LONG: Final = 2.0
"""Seconds of work that came to nothing, after which a key is one that takes long to fail."""


class Schedule(Generic[Key]):
    """When each key is due, for so many workers. Times are in seconds, on a clock that never goes back."""

    def __init__(self, workers: int = 1) -> None:
        self._due: dict[Key, float] = {}
        self._worked_on: dict[Key, float] = {}
        self._failures: dict[Key, int] = {}
        self._slow: set[Key] = set()
        self._slow_at_once = max(1, workers // 2)

    def __len__(self) -> int:
        return len(self._due)

    def add(self, key: Key, at: float) -> None:
        """Have a key looked at when it is this late; a sooner time that was set before stays."""
        self._due[key] = min(at, self._due.get(key, at))

    def take(self, now: float) -> Key | None:
        """The key that has been due for longest, to be worked on until `done`; None if none is to be had."""
        key = self._next()
        if key is None or self._due[key] > now:
            return None
        del self._due[key]
        self._worked_on[key] = now
        return key

    def is_due(self, key: Key, now: float) -> bool:
        """Whether a key is to be looked at now, also if it is being worked on."""
        return key in self._due and self._due[key] <= now

    def done(self, key: Key, now: float, *, failed: bool, spread: float = 0.0) -> None:
        """A key has been worked on; `spread`, from 0 up to 1, is how much of a third of its delay is taken off."""
        began = self._worked_on.pop(key, now)
        self._slow.discard(key)
        if not failed:
            self._failures.pop(key, None)
            return
        if now - began > LONG:
            self._slow.add(key)
        failures = self._failures[key] = self._failures.get(key, 0) + 1
        delay = min(FIRST_DELAY * 2.0 ** min(failures - 1, 32), MOST_DELAY)
        self.add(key, now + delay * (1 - spread / 3))

    def next_due(self) -> float | None:
        """When the next key is due that is to be had; None if there is none."""
        key = self._next()
        return None if key is None else self._due[key]

    def _next(self) -> Key | None:
        """The key that is due first of those that nobody works on, and that are not one slow one too many."""
        is_enough = len(self._slow & self._worked_on.keys()) >= self._slow_at_once
        beyond = {*self._worked_on, *(self._slow if is_enough else ())}
        return min((key for key in self._due if key not in beyond), key=self._due.__getitem__, default=None)


class WorkQueue(Generic[Key]):
    """A schedule on the event loop. To be made on the loop that it is used on."""

    def __init__(self, workers: int = 1, *, chance: Callable[[], float] = random.random) -> None:
        self._schedule = Schedule[Key](workers)
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
