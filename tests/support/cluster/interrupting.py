"""Operators that are killed at one call of one reconcile, and what their cluster looks like to whoever comes next.

An operator is its reconciler and its store; both are dropped where it is killed. States are compared without what
differs between any two pools that are made in the same way: names, uids, versions, addresses and times.
"""

from __future__ import annotations

import asyncio
import base64
import gzip
import json
from collections.abc import Callable, Iterable
from typing import Any

from support.cluster.client import Client, Document
from support.cluster.client import Kind as Named

from fairpool_operator.cluster import EVENT, FAIR_POOL, OWNED, TENANT_WEIGHT, Cluster
from fairpool_operator.compile import Settings
from fairpool_operator.compile.wanted import EDITION
from fairpool_operator.knowledge import Knowledge
from fairpool_operator.metrics import Tally
from fairpool_operator.reconcile import Reconciler
from fairpool_operator.store import Store
from fairpool_operator.view import PoolKey
from fairpool_operator.writing import REPORTER

SETTINGS = Settings("fairpool:test", namespaces=frozenset({"inference"}))
_LOOKS = 8
"""After so many looks at one pool an operator that is not at rest will never be."""


class Killed(Exception):
    """The operator is gone; what the server was told stays."""


class Interrupted:
    """A cluster whose operator is killed at its `at`-th call, before that has an effect or after; 0: never."""

    def __init__(self, cluster: Cluster, at: int = 0, *, after: bool = False) -> None:
        self._cluster = cluster
        self._at = at
        self._after = after
        self.calls = 0

    def __getattr__(self, verb: str) -> Any:
        async def call(*arguments: Any, **options: Any) -> Any:
            self.calls += 1
            is_last = self.calls == self._at
            if is_last and not self._after:
                raise Killed
            answer = await getattr(self._cluster, verb)(*arguments, **options)
            if is_last:
                raise Killed
            return answer

        return call


class Process:
    """One life of an operator of one namespace, from its first lists to its death."""

    def __init__(self, cluster: Cluster, namespace: str, make: Callable[..., Reconciler] = Reconciler) -> None:
        self._cluster = cluster
        self._namespace = namespace
        self._make = make
        self._store = Store()
        self._touched: set[PoolKey] = set()

    async def begin(self) -> None:
        """List everything, as a new operator does."""
        knowledge = Knowledge(
            self._store, self._cluster, lambda _: None, Tally(), namespaces=[self._namespace], every=3600.0
        )
        listing = asyncio.create_task(knowledge.run())
        await knowledge.synced.wait()
        listing.cancel()

    async def reconcile(self, pool: str, at: int = 0, *, after: bool = False) -> int:
        """Look at a pool until there is nothing left to do, or until killed; returns how many calls that took."""
        key = PoolKey(self._namespace, pool)
        cluster = Interrupted(self._cluster, at, after=after)
        make: Any = self._make
        reconciler = make(cluster, self._store, SETTINGS, self._touched.update, lambda _: False, identity="tests")
        try:
            for _ in range(_LOOKS):
                self._touched.discard(key)
                await reconciler.reconcile(key)
                if key not in self._touched:
                    return cluster.calls
        except Killed:
            return cluster.calls
        raise AssertionError(f"{key} does not come to rest")


async def state_of(admin: Client, namespace: str, pools: Iterable[str]) -> dict[str, dict[str, Any]]:
    """For each pool everything that is there of it, and said of it and its tenants."""
    pools = list(pools)
    states: dict[str, dict[str, Any]] = {pool: {} for pool in pools}
    for kind in (FAIR_POOL, TENANT_WEIGHT, *OWNED, EVENT):
        for found in await admin.list(Named(kind.api_version, kind.name), namespace):
            if kind is EVENT and found["reportingController"] != REPORTER:
                continue
            about = found["regarding"]["name"] if kind is EVENT else found["metadata"]["name"]
            if about[:8] in states:
                told = states[about[:8]]
                told.setdefault(kind.name, []).append(_event(found) if kind is EVENT else _content(found))
    return {pool: _without_names(pool, state) for pool, state in states.items()}


def _event(found: Document) -> Document:
    return {name: found[name] for name in ("reason", "type", "note")}


def _content(found: Document) -> Document:
    metadata = found["metadata"]
    kept = {name: metadata.get(name) for name in ("name", "labels", "annotations", "ownerReferences")}
    content = {name: part for name, part in found.items() if name != "metadata"} | {"metadata": kept}
    (kept["annotations"] or {}).pop(EDITION, None)  # names and uids are in it
    content["metadata"]["managers"] = sorted({entry["manager"] for entry in metadata["managedFields"]})
    if found["kind"] == "Secret":
        content["data"] = json.loads(gzip.decompress(base64.b64decode(found["data"]["config.json.gz"])))
    for owner in kept["ownerReferences"] or ():
        del owner["uid"]
    for condition in (content.get("status") or {}).get("conditions") or ():
        del condition["lastTransitionTime"]
    for address in ("clusterIP", "clusterIPs"):
        content.get("spec", {}).pop(address, None)
    return content


def _without_names(pool: str, state: dict[str, Any]) -> dict[str, Any]:
    text = json.dumps(state, sort_keys=True)
    for secret in state.get("Secret", ()):
        text = text.replace(secret["metadata"]["annotations"]["fairpool.dev/config-hash"], "the newest hash")
    replaced: dict[str, Any] = json.loads(text.replace(pool, "a pool"))
    return {kind: sorted(each, key=json.dumps) if isinstance(each, list) else each for kind, each in replaced.items()}
