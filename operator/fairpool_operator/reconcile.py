"""One look at one pool: what is wanted is compared with what is there, and the difference is written.

What always holds: a look can be broken off anywhere and begun again; it ends with everything as wanted or with an
error; where nothing differs nothing is written. A pool's objects are there before anything is said about them, so a
status never runs ahead of the cluster; an Event is told before the status after which it would not be told any more.
What the server answers that it does not take, for good or just now, is in the way of nothing else, is said in a
condition, and is an error in the end; only where it does not answer nothing more is tried. Weights never wait for
statuses, of which there may be thousands: these are broken off for a newer edit, and said after it.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Coroutine, Iterable, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Final

from fairpool_operator.cluster import FAIR_POOL, TENANT_WEIGHT, Cluster, Kind
from fairpool_operator.compile import (
    Apply,
    Changes,
    Compiled,
    Event,
    Removal,
    Said,
    Settings,
    changes,
    compile_pool,
    edition_of,
    is_controlled_by,
    kinds_of,
)
from fairpool_operator.contests import Contests
from fairpool_operator.errors import ClusterError, Conflict, Forbidden, NotNow, NotThere, RejectedByServer
from fairpool_operator.store import Store
from fairpool_operator.view import OWNED_KINDS, Object, Owned, PoolKey, Unwritten, View, object_name, read_owned
from fairpool_operator.writing import KINDS, Writer

_STRANGER_SECONDS: Final = 10.0
"""Between two looks at an object that is not labelled as the pool's and has a name that the pool needs."""
_SAID_AT_ONCE: Final = 8
"""Statuses under way at a time: one takes the server some ten milliseconds, and a pool may have thousands."""
_HURRY_SECONDS: Final = 0.5
"""For how long statuses are said although the pool is to be looked at again."""
_CONTESTED: Final = (
    "somebody else changes it whenever it has been put back, so that is done less and less often. It may be a second "
    "operator, which goes by the same name; whom else its metadata.managedFields name is to leave it alone."
)
_MANY: Final = 500
"""From so many TenantWeights on a decision takes a tenth of a second and up to some: the Lease must not wait for it."""


@dataclass(frozen=True, slots=True)
class _Outcome:
    """What a look has come to so far.

    Attributes:
        problems: what the API server did not take.
        unwritten: the objects that are not as they are wanted.
        waits: the seconds after which to look again.
    """

    problems: list[ClusterError] = field(default_factory=list)
    unwritten: list[Unwritten] = field(default_factory=list)
    waits: list[float] = field(default_factory=list)


class Reconciler:
    """Looks at pools. Errors of the cluster come out as they are: whoever called tries again.

    Args:
        cluster: where to write.
        store: what is known.
        settings: what is the same for all pools.
        touched: told which pools are to be looked at, for what an answer taught.
        is_due: whether a pool is to be looked at again, whatever is being said about it.
        identity: this process, in Events.
        now: the time of day.
    """

    def __init__(
        self,
        cluster: Cluster,
        store: Store,
        settings: Settings,
        touched: Callable[[Iterable[PoolKey]], None],
        is_due: Callable[[PoolKey], bool],
        *,
        identity: str,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._cluster = cluster
        self._store = store
        self._settings = settings
        self._touched = touched
        self._is_due = is_due
        self._contests = Contests()
        self._writer = Writer(cluster, self._learn, identity=identity, now=now)
        self._now = now

    async def reconcile(self, key: PoolKey) -> float | None:
        """Make everything as it is wanted; returns in how many seconds to look again unasked, None: never.

        Raises:
            ClusterError: something could not be written; what was written before stays.
        """
        now = self._now()
        view = self._store.view(key)
        compiled = await self._decide(view, now)
        if await self._meet_strangers(view):
            view = self._store.view(key)
            compiled = await self._decide(view, now)
        outcome = _Outcome()
        await self._write_objects(changes(compiled, view), view, outcome)
        if outcome.unwritten:
            compiled = await self._decide(replace(view, unwritten=tuple(outcome.unwritten)), now)
        await self._say_all(compiled, changes(compiled, view), key, outcome)
        if outcome.problems:
            raise outcome.problems[0]
        if _strangers(view) and not _is_gone(view):
            outcome.waits.append(_STRANGER_SECONDS)
        if compiled.changes_at is not None:
            outcome.waits.append(max(0.0, (compiled.changes_at - now).total_seconds()))
        return min(outcome.waits, default=None)

    async def _decide(self, view: View, now: datetime) -> Compiled:
        if len(view.weights) < _MANY:
            return compile_pool(view, self._settings, now)
        return await asyncio.to_thread(compile_pool, view, self._settings, now)

    async def _write_objects(self, wanted: Changes, view: View, outcome: _Outcome) -> None:
        """Write what differs; what the server does not take keeps nothing else from being written."""
        for change in wanted.of_objects:
            try:
                await self._write(change, view, outcome)
            except (Forbidden, NotNow, RejectedByServer) as problem:
                outcome.problems.append(problem)
                words = f"it is to be removed: {problem.answer}" if isinstance(change, Removal) else problem.answer
                outcome.unwritten.append(Unwritten(change.kind, words, is_for_good=not isinstance(problem, NotNow)))

    async def _write(self, change: Apply | Removal, view: View, outcome: _Outcome) -> None:
        if isinstance(change, Removal):
            await self._writer.write(change, view.key)
            return
        name, now = (change.kind, *view.key), asyncio.get_running_loop().time()
        if wait := self._contests.wait(name, change.edition, now):
            outcome.waits.append(wait)
            outcome.unwritten.append(Unwritten(change.kind, _CONTESTED, is_for_good=False))
            return
        found = await self._writer.write(change, view.key)
        # What a policy of the cluster makes of it all the same is written by nobody, and is no contest.
        if found is not None and _is_moved(view.owned.get(change.kind), read_owned(change.kind, found)):
            self._contests.written(name, change.edition, now)

    async def _meet_strangers(self, view: View) -> bool:
        """Ask for what nobody tells of: objects that are not labelled as the pool's, under the names that it needs.

        Those are the ones that are not known to be there, whether they are to be made now or not, for a label can be
        taken away at any time; and the ones found before that may be gone.
        """
        met = False
        needed = frozenset[str]() if view.pool is None else kinds_of(view.pool)
        for kind in OWNED_KINDS:
            if kind in needed - view.owned.keys():
                met |= await self._ask_for(kind, object_name(kind, view.key.name), view) is not None
        for stranger in () if _is_gone(view) else _strangers(view):
            there = await self._ask_for(stranger.kind, stranger.name, view)
            if there is None or there["metadata"]["uid"] != stranger.uid:
                self._touched(self._store.remove(stranger.kind, stranger.object()))
                met = True
        return met

    async def _ask_for(self, kind: str, name: str, view: View) -> Object | None:
        """An object as it is now, which is known then: of a stranger only the metadata.

        Raises:
            Conflict: it was told to be gone meanwhile, so nothing is known for sure; nothing is written on a guess.
        """
        begun, pool = self._store.begin(), view.pool
        there = await self._cluster.get_metadata(KINDS[kind], view.key.namespace, name)
        if there is not None and pool is not None and is_controlled_by(pool, there):
            there = await self._cluster.get(KINDS[kind], view.key.namespace, name)
        if there is not None:
            self._touched(self._store.put(kind, there, begun))
            if kind not in self._store.view(view.key).owned:
                raise Conflict(f"{kind} {name} is there and was told to be gone: it is asked for again")
        return there

    async def _say_all(self, compiled: Compiled, wanted: Changes, key: PoolKey, outcome: _Outcome) -> None:
        """Tell Events and write statuses that differ, as many as a newer look leaves time for."""
        events = defaultdict[str, list[Event]](list)
        for event in compiled.events:
            events[event.metadata.uid].append(event)
        hurry = asyncio.get_running_loop().time() + _HURRY_SECONDS
        left = iter(wanted.tenant_statuses)

        async def say_on() -> None:
            for tenant in left:
                await self._tell(events.pop(tenant.metadata.uid, ()))
                await self._say(TENANT_WEIGHT, tenant, outcome)
                if asyncio.get_running_loop().time() > hurry and self._is_due(key):
                    return

        await _together(say_on() for _ in range(min(_SAID_AT_ONCE, len(wanted.tenant_statuses))))
        if wanted.pool_status is not None:
            await self._tell(events.pop(wanted.pool_status.metadata.uid, ()))
            await self._say(FAIR_POOL, wanted.pool_status, outcome)
        if next(left, None) is not None:
            outcome.waits.append(0.0)

    async def _tell(self, events: Iterable[Event]) -> None:
        for event in events:
            await self._writer.tell(event)

    async def _say(self, kind: Kind, said: Said, outcome: _Outcome) -> None:
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
        except (Conflict, Forbidden, NotNow, NotThere, RejectedByServer) as problem:
            outcome.problems.append(problem)

    def _learn(self, kind: str, found: Object) -> None:
        """An answer may hold edits that no watch has told of yet: whom they concern is looked at again."""
        self._touched(self._store.put(kind, found))


def _is_gone(view: View) -> bool:
    return view.pool is None and view.unread_pool is None


def _is_moved(before: Owned | None, after: Owned) -> bool:
    """Whether more of an object is another than its status."""
    if before is None or before.uid != after.uid:
        return True
    was, is_now = ({**each.object(), "status": None} for each in (before, after))
    return was != is_now


def _strangers(view: View) -> tuple[Owned, ...]:
    return tuple(each for each in view.owned.values() if not each.is_followed)


async def _together(coroutines: Iterator[Coroutine[Any, Any, None]]) -> None:
    """Run all to their ends; where one fails the others are cancelled, and its error comes out as it is."""
    try:
        async with asyncio.TaskGroup() as tasks:
            for each in coroutines:
                tasks.create_task(each)
    except ExceptionGroup as failed:
        raise failed.exceptions[0] from None
