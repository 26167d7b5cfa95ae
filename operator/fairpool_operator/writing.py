"""How one object, one status or one Event gets to the API server, whatever is in its way.

What always holds: what is written names the very object that it is meant for, and what somebody else made under a name
that the pool needs stays as it is, also when it came after the operator had looked. What had to be written in another
way than by server-side apply is taken away again once it is wanted no more, as what was applied is.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import datetime
from typing import Final

from fairpool_operator.cluster import EVENT, FAIR_POOL, OWNED, Cluster, Kind
from fairpool_operator.compile import Apply, Event, Removal
from fairpool_operator.differences import MANAGER, excerpt, left_by_patches
from fairpool_operator.errors import Conflict, Forbidden, NotThere, RejectedByServer
from fairpool_operator.view import Object, PoolKey

log = logging.getLogger(__name__)

REPORTER: Final = "fairpool.dev/operator"
KINDS: Final = {kind.name: kind for kind in OWNED}
"""The kinds of a pool's objects, by name."""

_TRIES: Final = 5
"""How often what was left is looked for, in versions that others replace."""


class Writer:
    """Writes what looks at pools come to; `learn` is told of each object as it is then."""

    def __init__(
        self,
        cluster: Cluster,
        learn: Callable[[str, Object], None],
        *,
        identity: str,
        now: Callable[[], datetime],
    ) -> None:
        self._cluster = cluster
        self._learn = learn
        self._identity = identity
        self._now = now

    async def write(self, change: Apply | Removal, key: PoolKey) -> Object | None:
        """Make an object of a pool what is wanted, or remove it; returns it as it is then.

        Raises:
            Conflict: it is another object by now, or somebody else has just made one of its name.
            ClusterError: it could not be written.
        """
        kind = KINDS[change.kind]
        if isinstance(change, Removal):
            await self._cluster.delete(kind, change.namespace, change.name, change.uid)
            return None
        log.info(
            "pool %s: %s %s, at %s", key, kind.name, change.wanted["metadata"]["name"], ", ".join(change.paths[:8])
        )
        if change.uid is None:
            return await self._make(kind, change.wanted)
        identity = {**_identity(change.wanted), "uid": change.uid}
        wanted = {**change.wanted, "metadata": {**change.wanted["metadata"], **identity}}
        patch = excerpt(change.wanted, change.paths)
        patch["metadata"] = {**patch.get("metadata", {}), **identity}
        found = await self._put(kind, wanted, patch)
        self._learn(kind.name, found)
        return found

    async def say(self, kind: Kind, body: Object) -> Object:
        """Write a status; returns its resource as it is then.

        Raises:
            Conflict, NotThere: the resource is gone, or is another of its name, as whoever follows it will soon hear;
                or the server could not settle who of several writes first.
            ClusterError: it could not be written.
        """
        return await self._put(kind, body, body, status=True)

    async def tell(self, event: Event) -> None:
        """Tell people; an Event that was told before is not told again, and one that is refused is not in the way.

        Raises:
            NotNow: it has to be told later.
            ClusterUnavailable: nobody can be told anything.
        """
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

    async def _make(self, kind: Kind, wanted: Object) -> Object:
        """Apply what was not there a moment ago; what somebody made meanwhile is given back as it was."""
        made = await self._cluster.apply(kind, wanted, force=False)
        if _is_ours_alone(made):
            self._learn(kind.name, made)
            return made
        metadata = {**_identity(wanted), "uid": made["metadata"]["uid"]}
        nothing = {"apiVersion": wanted["apiVersion"], "kind": wanted["kind"], "metadata": metadata}
        self._learn(kind.name, await self._cluster.apply(kind, nothing))
        raise Conflict(f"somebody else has just made {kind.name} {metadata['name']}")

    async def _put(self, kind: Kind, wanted: Object, patch: Object, *, status: bool = False) -> Object:
        """Apply; where that is refused, put `patch` in the place of what is there, and apply then."""
        try:
            there = await self._cluster.apply(kind, wanted, status=status)
        except RejectedByServer:
            # What somebody added to a list can make ours impossible: a second port of its name, too many conditions.
            await self._cluster.merge(kind, patch, status=status)
            there = await self._cluster.apply(kind, wanted, status=status)
        for _ in range(_TRIES):
            left = left_by_patches(wanted, there, subresource="status" if status else "")
            if not left:
                return there
            try:
                return await self._cluster.take_out(kind, there, left, status=status)
            except Conflict:
                # A controller that answers to what was applied writes a newer version at once.
                there = await self._cluster.apply(kind, wanted, status=status)
        raise Conflict(f"{kind.name} {wanted['metadata']['name']} changes too fast")


def _identity(wanted: Object) -> dict[str, str]:
    return {name: wanted["metadata"][name] for name in ("namespace", "name")}


def _is_ours_alone(made: Object) -> bool:
    """Whether nobody else has set a field, of those who are not controllers saying how things stand."""
    record = made["metadata"].get("managedFields") or ()
    return all(entry.get("manager") == MANAGER or entry.get("subresource") for entry in record)
