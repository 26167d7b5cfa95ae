"""What is said about a pool and its tenants: its status, theirs, and Events.

What always holds: an Event is told before the status after which nobody would know any more that it is to be told, or
else kept, as long as this process lives, until it can be. What cannot be said, for good or just now, keeps nothing else
from being said, and is tried after all else the next time. Statuses, of which there may be thousands, are broken off
for a newer edit; and where the API server does not take some before its time is up, no more are tried than there is
time for, so that a webhook which hangs costs a look seconds, however many tenants and namespaces there are.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections import defaultdict
from collections.abc import Callable, Coroutine, Iterable
from dataclasses import dataclass, field
from typing import Any, Final

from fairpool_operator.cluster import FAIR_POOL, TENANT_WEIGHT, Kind
from fairpool_operator.compile import Changes, Compiled, Event, Said, edition_of
from fairpool_operator.contests import Contests
from fairpool_operator.errors import ClusterUnavailable, Conflict, Forbidden, NotNow, NotThere, RejectedByServer
from fairpool_operator.outcome import Outcome
from fairpool_operator.store import Store
from fairpool_operator.view import Object, PoolKey
from fairpool_operator.writing import Writer

log = logging.getLogger(__name__)

_AT_ONCE: Final = 8
"""Statuses under way at a time: one takes the server some ten milliseconds, and a pool may have thousands."""
_HURRY_SECONDS: Final = 0.5
"""For how long statuses are said although the pool is to be looked at again, or the server does not take them."""
_ENOUGH_SECONDS: Final = 5.0
"""After which a look begins to say nothing more."""
_UNTOLD_SECONDS: Final = 30.0
"""After which an Event that could not be told is tried again."""


@dataclass(slots=True)
class _Memory:
    """What could not be said of a pool, over all looks at it.

    Attributes:
        late: when a resource's status could not be said the last time, by uid.
        untold: the Events that could not, by name, those of the namespace that is longest untried first.
    """

    late: dict[str, float] = field(default_factory=dict)
    untold: dict[str, Event] = field(default_factory=dict)

    def keep_only(self, compiled: Compiled, wanted: Changes) -> None:
        """Forget what is not wanted any more, and what no condition is to say any more."""
        to_say = {each.metadata.uid for each in (wanted.pool_status, *wanted.tenant_statuses) if each}
        self.late = {uid: at for uid, at in self.late.items() if uid in to_say}
        if self.untold:
            every = (compiled.pool_status, *compiled.tenant_statuses)
            said = {
                (each.metadata.uid, at.reason, at.observed_generation)
                for each in every
                if each
                for at in each.status.conditions
            }
            self.untold = {
                name: each
                for name, each in self.untold.items()
                if (each.metadata.uid, each.reason, each.metadata.generation) in said
            }

    def keep(self, event: Event) -> None:
        """It could not be told, nor could any other of its namespace: those of all others come first."""
        self.untold[event.name] = event
        last = {name: each for name, each in self.untold.items() if each.metadata.namespace == event.metadata.namespace}
        self.untold = {name: each for name, each in self.untold.items() if name not in last} | last


@dataclass(frozen=True, slots=True)
class _Heard:
    """What one look has found out so far: the namespaces whose statuses, or Events, are not taken just now."""

    slow: set[str] = field(default_factory=set)
    mute: set[str] = field(default_factory=set)


class Sayer:
    """Says what looks at pools come to; `learn` is told of each resource as it is then.

    `is_due` tells whether a pool is to be looked at again, whatever is being said about it.
    """

    def __init__(
        self,
        writer: Writer,
        store: Store,
        contests: Contests,
        learn: Callable[[str, Object], None],
        is_due: Callable[[PoolKey], bool],
    ) -> None:
        self._writer = writer
        self._store = store
        self._contests = contests
        self._learn = learn
        self._is_due = is_due
        self._memories: dict[PoolKey, _Memory] = {}

    async def say_all(self, compiled: Compiled, wanted: Changes, key: PoolKey, outcome: Outcome) -> None:
        """Tell Events and write the statuses that differ, as many as a newer look leaves time for.

        Raises:
            ClusterUnavailable: nobody can be told anything.
        """
        memory = self._memories.setdefault(key, _Memory())
        memory.keep_only(compiled, wanted)
        try:
            await self._say_on(compiled, wanted, key, memory, outcome)
        finally:
            if not memory.late and not memory.untold:
                self._memories.pop(key, None)
        if memory.untold:
            outcome.waits.append(_UNTOLD_SECONDS)

    async def _say_on(
        self, compiled: Compiled, wanted: Changes, key: PoolKey, memory: _Memory, outcome: Outcome
    ) -> None:
        now, heard = asyncio.get_running_loop().time, _Heard()
        events = defaultdict[str, list[Event]](list)
        for event in compiled.events:
            events[event.metadata.uid].append(event)
        hurry, enough = now() + _HURRY_SECONDS, now() + _ENOUGH_SECONDS
        left = iter(_in_order(wanted, memory))

        def is_enough() -> bool:
            return now() > (hurry if self._is_due(key) else enough)

        async def say_some() -> None:
            for kind, said in left:
                if said.metadata.namespace in heard.slow and now() > hurry:
                    continue
                for event in events.pop(said.metadata.uid, ()):
                    await self._tell(event, memory, heard)
                await self._say(kind, said, memory, heard, outcome)
                if is_enough():
                    return

        await _together((self._tell_the_untold(memory, heard, is_enough), *(say_some() for _ in range(_AT_ONCE))))
        if next(left, None) is not None:
            outcome.waits.append(0.0)

    async def _tell_the_untold(self, memory: _Memory, heard: _Heard, is_enough: Callable[[], bool]) -> None:
        for event in tuple(memory.untold.values()):
            if event.metadata.namespace not in heard.mute:
                await self._tell(event, memory, heard)
            if is_enough():
                return

    async def _tell(self, event: Event, memory: _Memory, heard: _Heard) -> None:
        namespace = event.metadata.namespace
        if namespace in heard.mute:
            memory.untold.setdefault(event.name, event)
            return
        try:
            await self._writer.tell(event)
        except (ClusterUnavailable, NotNow) as problem:
            # Events may be kept in a storage of their own. Whether the server is away, the next status will tell.
            log.warning("an Event has to be told later: %s", problem)
            heard.mute.add(namespace)
            memory.keep(event)
        else:
            memory.untold.pop(event.name, None)

    async def _say(self, kind: Kind, said: Said, memory: _Memory, heard: _Heard, outcome: Outcome) -> None:
        """Write a status; one that cannot be written keeps none of the others back."""
        name, edition = (kind.name, said.metadata.namespace, said.metadata.name), edition_of(said)
        now = asyncio.get_running_loop().time()
        memory.late[said.metadata.uid] = now
        if wait := self._contests.wait(name, edition, now):
            outcome.waits.append(wait)
            return
        try:
            with self._store.saying(said):
                self._learn(kind.name, await self._writer.say(kind, said.body()))
        except (Conflict, Forbidden, NotNow, NotThere, RejectedByServer) as problem:
            outcome.problems.append(problem)
            # A pool's own status is one of a kind: nothing follows from it for its tenants' statuses.
            if isinstance(problem, NotNow) and kind is TENANT_WEIGHT:
                heard.slow.add(said.metadata.namespace)
            return
        del memory.late[said.metadata.uid]
        self._contests.written(name, edition, now)
        outcome.said.append(said.metadata.uid)


def _in_order(wanted: Changes, memory: _Memory) -> list[tuple[Kind, Said]]:
    """The pool's own status, then its tenants', the longest untried first."""
    pool = [(FAIR_POOL, wanted.pool_status)] if wanted.pool_status is not None else []
    tenants = sorted(wanted.tenant_statuses, key=lambda each: memory.late.get(each.metadata.uid, -math.inf))
    return [*pool, *((TENANT_WEIGHT, each) for each in tenants)]


async def _together(coroutines: Iterable[Coroutine[Any, Any, None]]) -> None:
    """Run all to their ends; where one fails the others are cancelled, and its error comes out as it is."""
    try:
        async with asyncio.TaskGroup() as tasks:
            for each in coroutines:
                tasks.create_task(each)
    except ExceptionGroup as failed:
        raise failed.exceptions[0] from None
