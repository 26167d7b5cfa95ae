"""What a decision about one pool comes to."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import datetime

from fairpool_gateway.config import PoolConfig
from fairpool_operator.errors import Refused
from fairpool_operator.resources import FairPoolStatus, Metadata, TenantWeightStatus
from fairpool_operator.view import Object


@dataclass(frozen=True, slots=True)
class Removal:
    """An object of the pool's that is there and wanted no more; this very one, by its uid."""

    kind: str
    namespace: str
    name: str
    uid: str


@dataclass(frozen=True, slots=True)
class PoolStatus:
    """What is to be said about the pool, all but its gateway's own report."""

    metadata: Metadata
    status: FairPoolStatus

    def body(self) -> Object:
        """What to apply to the status of this very FairPool."""
        return _status_of("FairPool", self.metadata, self.status)


@dataclass(frozen=True, slots=True)
class TenantStatus:
    """What is to be said about one TenantWeight."""

    metadata: Metadata
    status: TenantWeightStatus

    def body(self) -> Object:
        """What to apply to the status of this very TenantWeight."""
        return _status_of("TenantWeight", self.metadata, self.status)


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why nothing is made of a resource, or of a part of it; conditions say it, all that there is of a kind in one."""

    kind: str
    metadata: Metadata
    problem: Refused


@dataclass(frozen=True, slots=True)
class Event:
    """Something that a person has to do something about, told once for each edition of a resource."""

    kind: str
    metadata: Metadata
    reason: str
    message: str

    @property
    def name(self) -> str:
        """What the Event is called: the same for the same reason, so that the API server refuses to have it twice."""
        told = f"{self.metadata.uid}/{self.metadata.generation}/{self.reason}"
        return f"{self.metadata.name[:200].rstrip('.-')}.{hashlib.sha256(told.encode()).hexdigest()[:16]}"


@dataclass(frozen=True, slots=True)
class Compiled:
    """What is wanted for one pool.

    Attributes:
        config: what its gateway gets; None where the last one stays.
        config_hash: by which that is known.
        objects: what is to be there, in this order; what is not among them is left as it is.
        removals: what is to be removed.
        pool_status: what is to be said about the pool; None if it is not there.
        tenant_statuses: what is to be said about its TenantWeights.
        refusals: why something is not acted upon, each with its place.
        events: what is to be told to people.
        changes_at: when time alone will change this; None: never.
    """

    config: PoolConfig | None = None
    config_hash: str | None = None
    objects: tuple[Object, ...] = ()
    removals: tuple[Removal, ...] = ()
    pool_status: PoolStatus | None = None
    tenant_statuses: tuple[TenantStatus, ...] = ()
    refusals: tuple[Refusal, ...] = ()
    events: tuple[Event, ...] = ()
    changes_at: datetime | None = None


def _status_of(kind: str, metadata: Metadata, status: FairPoolStatus | TenantWeightStatus) -> Object:
    return {
        "apiVersion": "fairpool.dev/v1alpha1",
        "kind": kind,
        "metadata": {"name": metadata.name, "namespace": metadata.namespace, "uid": metadata.uid},
        "status": status.written(),
    }
