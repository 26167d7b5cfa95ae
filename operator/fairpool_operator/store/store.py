"""What is known of the cluster, kept by name, so that one pool's view is put together without asking anybody.

Watches bring changes one by one, and may miss some; every few minutes a fresh list of a kind replaces all that is known
of it. What always holds: whoever changes the store is told which pools have to be looked at, those of objects that
vanished too, and none where nothing changed that any decision could depend on, or only what the operator is saying
itself; no value of a Secret is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from fairpool_operator.compile import Said, is_all_that_happened
from fairpool_operator.errors import Unreadable
from fairpool_operator.resources import READY, FairPool, TenantWeight, read_pool, read_tenant_weight
from fairpool_operator.store.index import Index
from fairpool_operator.store.table import Change, Name, Table
from fairpool_operator.view import (
    CONFIG,
    GATEWAY,
    LABEL,
    OWNED_KINDS,
    GatewayPod,
    Owned,
    PoolKey,
    Secret,
    Unread,
    View,
    object_name,
    pool_of,
    read_owned,
    read_pod,
    read_secret,
    read_unread,
    secrets_of_pool,
    secrets_of_weight,
)

Touched = frozenset[PoolKey]
"""The pools that have to be looked at."""

_POOL_LABEL: Final = "fairpool.dev/pool"
_PodOfPool = tuple[PoolKey, GatewayPod]
_Changes = Iterable[Change[Any]]


class Store:
    """Everything known. Kinds are called as in manifests, such as `FairPool` or `Secret`."""

    def __init__(self) -> None:
        self._pools = Table[FairPool | Unread](_pool)
        self._weights = Table[TenantWeight | Unread](_weight)
        self._secrets = Table[Secret](_secret)
        self._namespaces = Table[Mapping[str, str]](_labels)
        self._pods = Table[_PodOfPool](_pod)
        self._owned = {kind: Table(_reader(kind), lambda each: each.is_followed) for kind in OWNED_KINDS}
        self._weights_of_pool = Index[PoolKey, Name]()
        self._weights_of_namespace = Index[str, Name]()
        self._weights_of_secret = Index[Name, Name]()
        self._pools_of_secret = Index[Name, Name]()
        self._pods_of_pool = Index[PoolKey, Name]()
        self._being_said: dict[str, Said] = {}
        self._moment = 0
        tables: dict[str, list[tuple[Table[Any], Callable[[Change[Any]], Iterable[PoolKey]]]]] = {
            "FairPool": [(self._pools, self._pool_changed)],
            "TenantWeight": [(self._weights, self._weight_changed)],
            "Secret": [(self._secrets, self._secret_changed)],
            "Namespace": [(self._namespaces, self._namespace_changed)],
            "Pod": [(self._pods, self._pod_changed)],
        }
        for kind, table in self._owned.items():
            tables.setdefault(kind, []).append((table, _owned_changed))
        self._tables = tables

    def begin(self) -> int:
        """The moment to give to `replace` or `put` when a list or a question that is begun now has been answered."""
        return self._moment

    def put(self, kind: str, resource: Mapping[str, Any], begun: int = -1) -> Touched:
        """An object was added or changed; or was asked for, at the moment that `begin` gave."""
        self._moment += 1
        return self._touched(kind, lambda table: table.put(resource, self._moment, begun))

    def remove(self, kind: str, resource: Mapping[str, Any]) -> Touched:
        """This very object is gone; another of its name is not."""
        self._moment += 1
        return self._touched(kind, lambda table: table.remove(resource, self._moment))

    def replace(
        self, kind: str, resources: Iterable[Mapping[str, Any]], begun: int, within: str | None = None
    ) -> Touched:
        """All objects of a kind, or of a kind in one namespace, by a list begun at the moment that `begin` gave."""
        self._moment += 1
        listed = list(resources)
        return self._touched(kind, lambda table: table.replace(listed, begun, self._moment, within))

    @contextmanager
    def saying(self, said: Said) -> Iterator[None]:
        """For as long as it takes to write this status and to put the answer.

        A pool may have thousands of statuses to be written, and watches tell of each, often before the answer: they
        touch no pool, for what was decided when this was said would be decided again. Whatever else becomes of the
        resource meanwhile does, and so does the same status at any other time, for then it may be an old one.
        """
        uid = said.metadata.uid
        self._being_said[uid] = said
        try:
            yield
        finally:
            self._being_said.pop(uid, None)

    def keys(self) -> Touched:
        """Every pool that is there, or that a TenantWeight refers to."""
        return frozenset(PoolKey(*name) for name in self._pools.names()) | self._weights_of_pool.keys()

    def has(self, key: PoolKey) -> bool:
        """Whether this is one of `keys`."""
        return key in self._pools.names() or bool(self._weights_of_pool.of(key))

    def counts(self) -> tuple[int, int]:
        """How many FairPools and TenantWeights there are."""
        return len(self._pools), len(self._weights)

    def unready(self) -> tuple[int, int]:
        """How many of them are not Ready, by the conditions that were last seen."""
        return sum(map(_is_unready, self._pools.values())), sum(map(_is_unready, self._weights.values()))

    def view(self, key: PoolKey) -> View:
        """Everything that a decision about this pool depends on."""
        pool = self._pools.get(key)
        weights = [self._weights.get(name) for name in sorted(self._weights_of_pool.of(key))]
        read = tuple(each for each in weights if isinstance(each, TenantWeight))
        names = set(secrets_of_pool(pool)) if isinstance(pool, FairPool) else set()
        names = names.union(*map(secrets_of_weight, read))
        owned = {kind: table.get((key.namespace, object_name(kind, key.name))) for kind, table in self._owned.items()}
        pods = [self._pods.get(name) for name in sorted(self._pods_of_pool.of(key))]
        return View(
            key=key,
            pool=pool if isinstance(pool, FairPool) else None,
            unread_pool=pool if isinstance(pool, Unread) else None,
            weights=read,
            unread_weights=tuple(each for each in weights if isinstance(each, Unread)),
            secrets={name: secret for name in sorted(names) if (secret := self._secrets.get(name))},
            namespaces={
                name: labels
                for name in sorted({each.metadata.namespace for each in read})
                if (labels := self._namespaces.get(("", name))) is not None
            },
            owned={kind: each for kind, each in owned.items() if each is not None},
            pods=tuple(each[1] for each in pods if each is not None),
        )

    def _touched(self, kind: str, change: Callable[[Table[Any]], _Changes]) -> Touched:
        return frozenset(
            key for table, changed in self._tables[kind] for each in change(table) for key in changed(each)
        )

    def _pool_changed(self, change: Change[FairPool | Unread]) -> Iterable[PoolKey]:
        before, after = (
            secrets_of_pool(each) if isinstance(each, FairPool) else () for each in (change.before, change.after)
        )
        self._pools_of_secret.move(change.name, before, after)
        return () if self._is_being_said(change) else (PoolKey(*change.name),)

    def _weight_changed(self, change: Change[TenantWeight | Unread]) -> Iterable[PoolKey]:
        states = change.before, change.after
        pools = [[] if each is None else [PoolKey(*each.pool)] for each in states]
        namespaces = [[] if each is None else [each.metadata.namespace] for each in states]
        secrets = [secrets_of_weight(each) if isinstance(each, TenantWeight) else () for each in states]
        self._weights_of_pool.move(change.name, *pools)
        self._weights_of_namespace.move(change.name, *namespaces)
        self._weights_of_secret.move(change.name, *secrets)
        return () if self._is_being_said(change) else pools[0] + pools[1]

    def _is_being_said(self, change: Change[FairPool | Unread] | Change[TenantWeight | Unread]) -> bool:
        said = None if change.after is None else self._being_said.get(change.after.metadata.uid)
        return said is not None and is_all_that_happened(said, change.before, change.after)

    def _secret_changed(self, change: Change[Secret]) -> Iterable[PoolKey]:
        pools = self._pools_of_secret.of(change.name)
        return [*(PoolKey(*name) for name in pools), *self._pools_of(self._weights_of_secret.of(change.name))]

    def _namespace_changed(self, change: Change[Mapping[str, str]]) -> Iterable[PoolKey]:
        _, namespace = change.name
        return [key for key in self._pools_of(self._weights_of_namespace.of(namespace)) if key.namespace != namespace]

    def _pod_changed(self, change: Change[_PodOfPool]) -> Iterable[PoolKey]:
        before, after = ([] if each is None else [each[0]] for each in (change.before, change.after))
        self._pods_of_pool.move(change.name, before, after)
        return before + after

    def _pools_of(self, weights: Iterable[Name]) -> list[PoolKey]:
        found = (self._weights.get(name) for name in weights)
        return [PoolKey(*each.pool) for each in found if each is not None]


def _is_unready(resource: FairPool | TenantWeight | Unread) -> bool:
    conditions = resource.conditions if isinstance(resource, Unread) else resource.status.conditions
    return not any((each.type, each.status) == (READY, "True") for each in conditions)


def _owned_changed(change: Change[Owned]) -> Iterable[PoolKey]:
    found = change.after or change.before
    assert found is not None
    pool = pool_of(found.kind, found.name)
    return () if pool is None else (PoolKey(found.namespace, pool),)


def _pool(resource: Mapping[str, Any]) -> FairPool | Unread:
    try:
        return read_pool(resource)
    except Unreadable as problem:
        return read_unread(resource, str(problem))


def _weight(resource: Mapping[str, Any]) -> TenantWeight | Unread:
    try:
        return read_tenant_weight(resource)
    except Unreadable as problem:
        return read_unread(resource, str(problem))


def _secret(resource: Mapping[str, Any]) -> Secret | None:
    """A Secret that somebody may name: none of the operator's own, and none that lists and watches leave out."""
    secret = read_secret(resource)
    is_labelled = LABEL in (resource["metadata"].get("labels") or {})
    return secret if is_labelled and secret.use != CONFIG else None


def _labels(resource: Mapping[str, Any]) -> Mapping[str, str]:
    return dict(resource["metadata"].get("labels") or {})


def _pod(resource: Mapping[str, Any]) -> _PodOfPool | None:
    metadata = resource["metadata"]
    labels = metadata.get("labels") or {}
    pool = labels.get(_POOL_LABEL)
    if pool is None or labels.get("app.kubernetes.io/name") != GATEWAY:
        return None
    return PoolKey(metadata["namespace"], pool), read_pod(resource)


def _reader(kind: str) -> Callable[[Mapping[str, Any]], Owned | None]:
    def read(resource: Mapping[str, Any]) -> Owned | None:
        return read_owned(kind, resource) if pool_of(kind, resource["metadata"]["name"]) else None

    return read
