"""What is said about a pool and its tenants: its status, theirs, and Events.

What always holds: an Event is told before the status after which nobody would know any more that it is to be told, or
else kept until it can be. What cannot be said, for good or just now, keeps nothing else from being said, and what could
not be said the last time is tried after all else. Statuses, of which there may be thousands, are broken off for a newer
edit; and where the API server does not take those of a namespace before its time is up, some are tried and no more, so
that a webhook which hangs costs a look seconds, however many tenants there are.
"""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from collections.abc import Callable, Coroutine, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from fairpool_operator.cluster import FAIR_POOL, TENANT_WEIGHT, Kind
from fairpool_operator.compile import Changes, Compiled, Event, Said, edition_of
from fairpool_operator.contests import Contests
from fairpool_operator.errors import Conflict, Forbidden, NotNow, NotThere, RejectedByServer
from fairpool_operator.outcome import Outcome
from fairpool_operator.store import Store
from fairpool_operator.view import Object, PoolKey
from fairpool_operator.writing import Writer

log = logging.getLogger(__name__)

_AT_ONCE: Final = 8
"""Statuses under way at a time: one takes the server some ten milliseconds, and a pool may have thousands."""
_HURRY_SECONDS: Final = 0.5
"""For how long statuses are said although the pool is to be looked at again, or the server does not take them."""
_UNTOLD_SECONDS: Final = 30.0
"""After which an Event that could not be told is tried again."""


@dataclass(frozen=True, slots=True)
class _Heard:
    """What a look has found out so far of who takes what.

    Attributes:
        slow: the namespaces of which some status is not taken just now.
        late: the resources whose status was not.
        untold: the Events that were not, by name.
    """

    slow: set[str] = field(default_factory=set)
    late: set[str] = field(default_factory=set)
    untold: dict[str, Event] = field(default_factory=dict)


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
        self._late: dict[PoolKey, set[str]] = {}
        self._untold: dict[PoolKey, dict[str, Event]] = {}

    async def say_all(self, compiled: Compiled, wanted: Changes, key: PoolKey, outcome: Outcome) -> None:
        """Tell Events and write the statuses that differ, as many as a newer look leaves time for.

        Raises:
            ClusterUnavailable: nobody can be told anything.
        """
        heard, now = _Heard(), asyncio.get_running_loop().time
        await self._tell(self._still_untold(compiled, key), heard)
        events = defaultdict[str, list[Event]](list)
        for event in compiled.events:
            events[event.metadata.uid].append(event)
        hurry, left = now() + _HURRY_SECONDS, iter(self._in_order(wanted, key))

        async def say_on() -> None:
            for kind, said in left:
                if said.metadata.namespace in heard.slow and now() > hurry:
                    continue
                await self._tell(events.pop(said.metadata.uid, ()), heard)
                await self._say(kind, said, heard, outcome)
                if now() > hurry and self._is_due(key):
                    return

        await _together(say_on() for _ in range(_AT_ONCE))
        if next(left, None) is not None:
            outcome.waits.append(0.0)
        if heard.untold:
            outcome.waits.append(_UNTOLD_SECONDS)
        self._remember(key, heard)

    def _in_order(self, wanted: Changes, key: PoolKey) -> list[tuple[Kind, Said]]:
        """The pool's own status, then its tenants', those that were not taken the last time at the end."""
        late = self._late.get(key, ())
        pool = [(FAIR_POOL, wanted.pool_status)] if wanted.pool_status is not None else []
        tenants = sorted(wanted.tenant_statuses, key=lambda each: each.metadata.uid in late)
        return [*pool, *((TENANT_WEIGHT, each) for each in tenants)]

    def _still_untold(self, compiled: Compiled, key: PoolKey) -> Iterator[Event]:
        """What could not be told before, and is said in a condition still."""
        untold = self._untold.get(key)
        if untold:
            every = (compiled.pool_status, *compiled.tenant_statuses)
            said = {(each.metadata.uid, at.reason) for each in every if each for at in each.status.conditions}
            yield from (each for each in untold.values() if (each.metadata.uid, each.reason) in said)

    async def _tell(self, events: Iterable[Event], heard: _Heard) -> None:
        for event in events:
            if not heard.untold:
                try:
                    await self._writer.tell(event)
                    continue
                except NotNow as problem:
                    log.warning("an Event has to be told later: %s", problem)
            heard.untold[event.name] = event

    async def _say(self, kind: Kind, said: Said, heard: _Heard, outcome: Outcome) -> None:
        """Write a status; one that cannot be written keeps none of the others back."""
        name, edition = (kind.name, said.metadata.namespace, said.metadata.name), edition_of(said)
        now = asyncio.get_running_loop().time()
        if wait := self._contests.wait(name, edition, now):
            outcome.waits.append(wait)
            return
        try:
            with self._store.saying(said):
                self._learn(kind.name, await self._writer.say(kind, said.body()))
            self._contests.written(name, edition, now)
        except NotNow as problem:
            outcome.problems.append(problem)
            heard.late.add(said.metadata.uid)
            if kind is TENANT_WEIGHT:
                heard.slow.add(said.metadata.namespace)
        except (Conflict, Forbidden, NotThere, RejectedByServer) as problem:
            outcome.problems.append(problem)

    def _remember(self, key: PoolKey, heard: _Heard) -> None:
        self._late.pop(key, None)
        self._untold.pop(key, None)
        if heard.late:
            self._late[key] = heard.late
        if heard.untold:
            self._untold[key] = heard.untold


async def _together(coroutines: Iterator[Coroutine[Any, Any, None]]) -> None:
    """Run all to their ends; where one fails the others are cancelled, and its error comes out as it is."""
    try:
        async with asyncio.TaskGroup() as tasks:
            for each in coroutines:
                tasks.create_task(each)
    except ExceptionGroup as failed:
        raise failed.exceptions[0] from None
