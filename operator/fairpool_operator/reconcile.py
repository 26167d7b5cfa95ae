"""One look at one pool: what is wanted is compared with what is there, and the difference is written.

What always holds: a look can be broken off anywhere and begun again; it ends with everything as wanted or with an
error; where nothing differs nothing is written. A pool's objects are there before anything is said about them, so a
status never runs ahead of the cluster; an Event is told before the status after which it would not be told any more.
What the server refuses is in the way of nothing else, is said in a condition, and is an error in the end.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Final

from fairpool_operator.cluster import EVENT, FAIR_POOL, OWNED, TENANT_WEIGHT, Cluster, Kind
from fairpool_operator.compile import Apply, Changes, Event, Settings, changes, compile_pool
from fairpool_operator.differences import excerpt
from fairpool_operator.errors import ClusterError, Conflict, Forbidden, NotThere, RejectedByServer
from fairpool_operator.store import Store
from fairpool_operator.view import Object, Owned, PoolKey, View

log = logging.getLogger(__name__)

REPORTER: Final = "fairpool.dev/operator"
_STRANGER_SECONDS: Final = 10.0
"""Between two looks at an object that is not labelled as the pool's and has a name that the pool needs."""
_KINDS: Final = {kind.name: kind for kind in OWNED}


class Reconciler:
    """Looks at pools. Errors of the cluster come out as they are: whoever called tries again."""

    def __init__(
        self,
        cluster: Cluster,
        store: Store,
        settings: Settings,
        touched: Callable[[Iterable[PoolKey]], None],
        *,
        identity: str,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._cluster = cluster
        self._store = store
        self._settings = settings
        self._touched = touched
        self._identity = identity
        self._now = now

    async def reconcile(self, key: PoolKey) -> float | None:
        """Make everything as it is wanted; returns in how many seconds to look again unasked, None: never.

        Raises:
            ClusterError: something could not be written; what was written before stays.
        """
        now = self._now()
        view = self._store.view(key)
        compiled = compile_pool(view, self._settings, now)
        if await self._meet_strangers(compiled.objects, view):
            view = self._store.view(key)
            compiled = compile_pool(view, self._settings, now)
        problems: list[ClusterError] = []
        if rejections := await self._write_objects(changes(compiled, view), key, problems):
            compiled = compile_pool(replace(view, rejections=rejections), self._settings, now)
        for event in compiled.events:
            await self._tell(event)
        wanted = changes(compiled, view)
        for tenant in wanted.tenant_statuses:
            await self._say(TENANT_WEIGHT, tenant.body(), problems)
        if wanted.pool_status is not None:
            await self._say(FAIR_POOL, wanted.pool_status.body(), problems)
        if problems:
            raise problems[0]
        waits = [_STRANGER_SECONDS] if _strangers(view) else []
        if compiled.changes_at is not None:
            waits.append(max(0.0, (compiled.changes_at - now).total_seconds()))
        return min(waits, default=None)

    async def _write_objects(self, wanted: Changes, key: PoolKey, problems: list[ClusterError]) -> dict[str, str]:
        """Write what differs; what the server does not take keeps nothing else from being written, and is returned."""
        rejections = {}
        for each in wanted.applies:
            try:
                await self._apply(each, key)
            except (Forbidden, RejectedByServer) as problem:
                problems.append(problem)
                rejections[each.wanted["kind"]] = problem.answer
        for removal in wanted.removals:
            await self._cluster.delete(_KINDS[removal.kind], removal.namespace, removal.name, removal.uid)
        return rejections

    async def _meet_strangers(self, wanted: Iterable[Object], view: View) -> bool:
        """Ask for what nobody tells of: objects that are not labelled as the pool's, under the names that it needs.

        Those are the ones to be made that may be there, and the ones found before that may be gone.
        """
        met = False
        for each in wanted:
            kind, metadata = each["kind"], each["metadata"]
            if kind in view.owned:
                continue
            there = await self._cluster.get(_KINDS[kind], metadata["namespace"], metadata["name"])
            if there is not None:
                self._learn(kind, there)
                met = True
        for stranger in _strangers(view):
            there = await self._cluster.get(_KINDS[stranger.kind], stranger.namespace, stranger.name)
            if there is None or there["metadata"]["uid"] != stranger.uid:
                self._touched(self._store.remove(stranger.kind, stranger.object()))
                met = True
            if there is not None:
                self._learn(stranger.kind, there)
        return met

    async def _apply(self, change: Apply, key: PoolKey) -> None:
        kind = _KINDS[change.wanted["kind"]]
        identity = {name: change.wanted["metadata"][name] for name in ("namespace", "name")}
        if change.uid is not None:
            identity["uid"] = change.uid
        log.info("pool %s: %s %s, at %s", key, kind.name, identity["name"], ", ".join(change.paths[:8]))
        wanted = {**change.wanted, "metadata": {**change.wanted["metadata"], **identity}}
        patch = excerpt(change.wanted, change.paths)
        patch["metadata"] = {**patch.get("metadata", {}), **identity}
        self._learn(kind.name, await self._put(kind, wanted, patch))

    async def _say(self, kind: Kind, body: Object, problems: list[ClusterError]) -> None:
        """Write a status; a resource that is gone, or another of its name, is none that it is about."""
        try:
            self._learn(kind.name, await self._put(kind, body, body, status=True))
        except (NotThere, Conflict) as problem:
            log.info("nothing to say it about any more: %s", problem)
        except (Forbidden, RejectedByServer) as problem:
            problems.append(problem)

    async def _put(self, kind: Kind, wanted: Object, patch: Object, *, status: bool = False) -> Object:
        """Apply; where that is refused, put `patch` in the place of what is there, and apply then."""
        try:
            return await self._cluster.apply(kind, wanted, status=status)
        except RejectedByServer:
            # What somebody added to a list can make ours impossible: a second port of its name, too many conditions.
            if "uid" not in wanted["metadata"]:
                raise
            await self._cluster.merge(kind, patch, status=status)
            return await self._cluster.apply(kind, wanted, status=status)

    def _learn(self, kind: str, found: Object) -> None:
        """An answer may hold edits that no watch has told of yet: whom they concern is looked at again."""
        self._touched(self._store.put(kind, found))

    async def _tell(self, event: Event) -> None:
        """Tell people; an Event that was told before is not told again, and none that is refused is in the way."""
        metadata = event.metadata
        body = {
            "apiVersion": EVENT.api_version,
            "kind": EVENT.name,
            "metadata": {"name": event.name, "namespace": metadata.namespace},
            "eventTime": self._now().strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
            "reportingController": REPORTER,
            "reportingInstance": self._identity[:128],
            "type": "Warning",
            "reason": event.reason,
            "action": "Reconcile",
            "note": event.message,
            "regarding": {
                "apiVersion": FAIR_POOL.api_version,
                "kind": event.kind,
                "name": metadata.name,
                "namespace": metadata.namespace,
                "uid": metadata.uid,
            },
        }
        try:
            await self._cluster.create(EVENT, body)
        except Conflict:
            return
        except (Forbidden, NotThere, RejectedByServer) as problem:
            log.warning("an Event could not be told: %s", problem)


def _strangers(view: View) -> tuple[Owned, ...]:
    return tuple(each for each in view.owned.values() if not each.is_followed)
