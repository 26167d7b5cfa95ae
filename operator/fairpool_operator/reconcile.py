"""One look at one pool: what is wanted is compared with what is there, and the difference is written.

What always holds: a look can be broken off anywhere and begun again; it ends with everything as wanted or with an
error; where nothing differs nothing is written. A pool's objects are there before anything is said about them, so a
status never runs ahead of the cluster. What the server answers that it does not take, for good or just now, is in the
way of nothing else, is said in a condition, and is an error in the end; only where it does not answer nothing more is
tried. What somebody else keeps changing is put back, later and later.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Final

from fairpool_operator.cluster import Cluster
from fairpool_operator.compile import (
    Apply,
    Changes,
    Compiled,
    Removal,
    Settings,
    changes,
    compile_pool,
    is_controlled_by,
    kinds_of,
)
from fairpool_operator.contests import MOST_DELAY, Contests
from fairpool_operator.errors import Conflict, Forbidden, NotNow, NotThere, RejectedByServer
from fairpool_operator.outcome import Outcome
from fairpool_operator.saying import Sayer
from fairpool_operator.store import Store
from fairpool_operator.view import OWNED_KINDS, Object, Owned, PoolKey, Unwritten, View, object_name, read_owned
from fairpool_operator.writing import KINDS, Writer

_STRANGER_SECONDS: Final = 10.0
"""Between two looks at an object that is not labelled as the pool's and has a name that the pool needs."""
_MISSING_SECONDS: Final = 5.0
"""For how long an object is missing at most that somebody else keeps deleting."""
_CONTESTED: Final = (
    "somebody else changes it whenever it has been put back, so that is done less and less often. It may be a second "
    "operator, which goes by the same name; whom else its metadata.managedFields name is to leave it alone."
)
_MANY: Final = 500
"""From so many TenantWeights on a decision takes a tenth of a second and up to some: the Lease must not wait for it."""


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
        self._contests = Contests()
        self._writer = Writer(cluster, self._learn, identity=identity, now=now)
        self._sayer = Sayer(self._writer, store, self._contests, self._learn, is_due)
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
        outcome = Outcome()
        await self._write_objects(changes(compiled, view), view, outcome)
        if outcome.unwritten:
            compiled = await self._decide(replace(view, unwritten=tuple(outcome.unwritten)), now)
        await self._sayer.say_all(compiled, changes(compiled, view), key, outcome)
        if outcome.problems:
            if outcome.said and 0.0 in outcome.waits:
                self._touched((key,))  # More is left to be said, and some of it was taken: that waits for no failure.
            raise outcome.problems[0]  # The waits are not told: whoever tries again does so within a minute.
        if _strangers(view) and not _is_gone(view):
            outcome.waits.append(_STRANGER_SECONDS)
        if compiled.changes_at is not None:
            outcome.waits.append(max(0.0, (compiled.changes_at - now).total_seconds()))
        return min(outcome.waits, default=None)

    async def _decide(self, view: View, now: datetime) -> Compiled:
        if len(view.weights) < _MANY:
            return compile_pool(view, self._settings, now)
        return await asyncio.to_thread(compile_pool, view, self._settings, now)

    async def _write_objects(self, wanted: Changes, view: View, outcome: Outcome) -> None:
        """Write what differs; what the server does not take keeps nothing else from being written."""
        for change in wanted.of_objects:
            try:
                await self._write(change, view, outcome)
            except (Forbidden, NotNow, NotThere, RejectedByServer) as problem:
                # What is not there may be something else of the pool's: a RoleBinding is not taken without its Role.
                outcome.problems.append(problem)
                words = f"it is to be removed: {problem.answer}" if isinstance(change, Removal) else problem.answer
                is_for_good = not isinstance(problem, NotNow | NotThere)
                outcome.unwritten.append(Unwritten(change.kind, words, is_for_good=is_for_good))

    async def _write(self, change: Apply | Removal, view: View, outcome: Outcome) -> None:
        if isinstance(change, Removal):
            await self._writer.write(change, view.key)
            return
        name, now = (change.kind, *view.key), asyncio.get_running_loop().time()
        most = _MISSING_SECONDS if change.uid is None else MOST_DELAY
        if wait := self._contests.wait(name, change.edition, now, most):
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
