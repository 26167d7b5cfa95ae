"""`View`: everything that one pool depends on, at one moment.

What always holds: a view is frozen and complete, so the same view gives the same decision in any process, at any time
and in any order of events; it holds no value of any Secret.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from pydantic import ValidationError

from fairpool_operator.resources import Condition, FairPool, Metadata, TenantWeight, read_metadata
from fairpool_operator.view.owned import Owned
from fairpool_operator.view.secrets import Secret


class PoolKey(NamedTuple):
    """Which pool: what is looked at, and decided about, as one."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class Unread:
    """A FairPool or TenantWeight that cannot be read, its pool, why not, and what was said about it before."""

    metadata: Metadata
    pool: PoolKey
    problem: str
    conditions: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class GatewayPod:
    """One pod of the pool's gateway. Its report counts while it `is_live`: neither over nor on its way out."""

    name: str
    uid: str
    is_ready: bool
    is_live: bool


@dataclass(frozen=True, slots=True)
class Unwritten:
    """One of a pool's objects that could not be written, or removed.

    Attributes:
        kind: which of them.
        words: why, as the API server says it.
        is_for_good: whether somebody has to do something about it, for the API server would say so again.
    """

    kind: str
    words: str
    is_for_good: bool


@dataclass(frozen=True, slots=True)
class View:
    """One pool and what it depends on.

    Attributes:
        key: which pool.
        pool: the pool; None if there is none, or none that can be read.
        unread_pool: the pool, if it is there and cannot be read.
        weights: the TenantWeights of all namespaces that refer to it.
        unread_weights: those among them that cannot be read.
        secrets: the Secrets that the pool and its TenantWeights name, by namespace and name, as far as they are there.
        namespaces: the labels of the namespaces of its TenantWeights, as far as they are known.
        owned: what is there by the names of the pool's own objects, by kind; not necessarily the pool's.
        pods: the pods of its gateway.
        unwritten: the pool's objects that were just to be written, and could not be.
    """

    key: PoolKey
    pool: FairPool | None = None
    unread_pool: Unread | None = None
    weights: tuple[TenantWeight, ...] = ()
    unread_weights: tuple[Unread, ...] = ()
    secrets: Mapping[tuple[str, str], Secret] = field(default_factory=dict)
    namespaces: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    owned: Mapping[str, Owned] = field(default_factory=dict)
    pods: tuple[GatewayPod, ...] = ()
    unwritten: tuple[Unwritten, ...] = ()


def read_pod(resource: Mapping[str, Any]) -> GatewayPod:
    """A pod of a gateway, from what the API server sent."""
    metadata, status = resource["metadata"], resource.get("status") or {}
    ready = any(each.get("type") == "Ready" and each.get("status") == "True" for each in status.get("conditions") or ())
    is_over = status.get("phase") in {"Succeeded", "Failed"}
    return GatewayPod(
        metadata["name"],
        metadata["uid"],
        is_ready=ready and not is_over,
        is_live=not is_over and "deletionTimestamp" not in metadata,
    )


def read_unread(resource: Mapping[str, Any], problem: str) -> Unread:
    """What can be said of a resource that cannot be read as a whole."""
    conditions = []
    for each in (resource.get("status") or {}).get("conditions") or ():
        try:
            conditions.append(Condition.model_validate(each))
        except ValidationError:
            continue
    metadata = read_metadata(resource)
    return Unread(metadata, _pool_of(resource, metadata), problem, tuple(conditions))


def _pool_of(resource: Mapping[str, Any], metadata: Metadata) -> PoolKey:
    match resource:
        case {"spec": {"poolRef": {"name": str(name), "namespace": str(namespace)}}}:
            return PoolKey(namespace, name)
        case {"spec": {"poolRef": {"name": str(name)}}}:
            return PoolKey(metadata.namespace, name)
        case _:
            return PoolKey(metadata.namespace, metadata.name)
