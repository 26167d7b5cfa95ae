"""What is said about a TenantWeight.

What always holds: an edit of one TenantWeight changes what is said about no other. So whether one is programmed is told
by the hash of its own part of the configuration: once a gateway was seen to use that part, it stays programmed until
the part changes, whatever else does. Whether a gateway is there at all is said about the pool.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from fairpool_operator.compile.aspects import ACCEPTED, PROGRAMMED, RESOLVED, STALLING
from fairpool_operator.compile.config import digest
from fairpool_operator.compile.settings import Settings
from fairpool_operator.compile.tenants import Judged
from fairpool_operator.errors import PoolNotFound, Refused, Unreadable
from fairpool_operator.resources import Condition, Finding, TenantWeight, TenantWeightStatus, conditions, summarise
from fairpool_operator.view import PoolKey

_NEEDED = (ACCEPTED, RESOLVED, PROGRAMMED)


@dataclass(frozen=True, slots=True)
class InForce:
    """What is known of the gateway's configuration: whether it is the newest, and if not what keeps it from that."""

    is_newest: bool
    kept_back: Refused | None = None


def tenant_status(judged: Judged, key: PoolKey, in_force: InForce, now: datetime) -> TenantWeightStatus:
    """What is to be said about a TenantWeight of a pool that is there."""
    resource, settings = judged.resource, judged.settings
    part = None if settings is None else digest(settings.model_dump_json(exclude_none=True).encode())
    programmed = _programmed(resource, part, in_force)
    found = (_accepted(judged, key), _resolved(judged), programmed)
    return TenantWeightStatus(
        observed_generation=resource.metadata.generation,
        conditions=_conditions(resource, found, now, ready=f"Tenant {resource.tenant} shares pool {key}."),
        tenant=resource.tenant,
        weight=settings and settings.weight,
        config_hash=part if programmed.holds else None,
    )


def pool_not_found(key: PoolKey, settings: Settings) -> PoolNotFound:
    """Why nothing is made of a TenantWeight whose pool is not there."""
    again = "or make this TenantWeight again with another spec.poolRef."
    return PoolNotFound(
        f"There is no FairPool {key}. Create it, {again}"
        if settings.looks_at(key.namespace)
        else f"This operator does not look at namespace {key.namespace}: ask those who run it to let it, {again}",
        "poolRef",
    )


def without_pool(resource: TenantWeight, problem: PoolNotFound, now: datetime) -> TenantWeightStatus:
    """What is to be said about a TenantWeight whose pool is not there."""
    found = (
        Finding(ACCEPTED, holds=None, reason="Pending", message="It is looked at once its pool is there."),
        Finding(RESOLVED, holds=False, reason=problem.reason, message=str(problem)),
        Finding(PROGRAMMED, holds=None, reason="Pending", message="No gateway knows the tenant."),
    )
    return TenantWeightStatus(
        observed_generation=resource.metadata.generation,
        conditions=_conditions(resource, found, now, ready=""),
        tenant=resource.tenant,
    )


def pool_unread(key: PoolKey) -> Unreadable:
    """Why nothing is made of a TenantWeight whose pool cannot be read."""
    return Unreadable(f"This operator cannot read its pool: see the conditions of FairPool {key}.", "poolRef")


def with_unread_pool(resource: TenantWeight, problem: Unreadable, now: datetime) -> TenantWeightStatus:
    """What is to be said about a TenantWeight whose pool cannot be read; what was in force stays so."""
    found = (
        Finding(ACCEPTED, holds=None, reason="Pending", message="It is looked at once its pool can be read."),
        Finding(RESOLVED, holds=False, reason=problem.reason, message=str(problem)),
        Finding(PROGRAMMED, holds=None, reason="Pending", message="The pool's gateway keeps its last configuration."),
    )
    return TenantWeightStatus(
        observed_generation=resource.metadata.generation,
        conditions=_conditions(resource, found, now, ready=""),
        tenant=resource.tenant,
        weight=resource.status.weight,
        config_hash=resource.status.config_hash,
    )


def _conditions(
    resource: TenantWeight, found: tuple[Finding, ...], now: datetime, *, ready: str
) -> tuple[Condition, ...]:
    summed_up = summarise(found, needed=_NEEDED, stalling=STALLING, ready_message=ready)
    generation = resource.metadata.generation
    return conditions(summed_up, before=resource.status.conditions, generation=generation, now=now)


def _accepted(judged: Judged, key: PoolKey) -> Finding:
    if judged.refused is not None:
        return Finding(ACCEPTED, holds=False, reason=judged.refused.reason, message=str(judged.refused))
    assert judged.settings is not None
    shares = f"Tenant {judged.settings.name} shares pool {key} with weight {judged.settings.weight}."
    suspended = "It is suspended: its requests are refused." if judged.settings.suspend else ""
    message = " ".join(filter(None, (shares, suspended, *judged.notes)))
    return Finding(ACCEPTED, holds=True, reason="Accepted", message=message)


def _resolved(judged: Judged) -> Finding:
    if judged.refused is not None:
        message = "Its keys are looked at once it is accepted."
        return Finding(RESOLVED, holds=None, reason="Pending", message=message)
    problems = judged.keys.problems
    if problems:
        return Finding(RESOLVED, holds=False, reason=problems[0].reason, message=" ".join(map(str, problems)))
    return Finding(RESOLVED, holds=True, reason="Resolved", message="Every key that it names can be used.")


def _programmed(resource: TenantWeight, part: str | None, in_force: InForce) -> Finding:
    if part is None:
        message = "No gateway uses it, for it is not accepted."
        return Finding(PROGRAMMED, holds=False, reason="NotAccepted", message=message)
    if in_force.is_newest or resource.status.config_hash == part:
        return Finding(PROGRAMMED, holds=True, reason="Programmed", message="The pool's gateway uses it as it is.")
    if in_force.kept_back is not None:
        message = "The pool's gateway keeps its last configuration: see the conditions of the pool."
        return Finding(PROGRAMMED, holds=False, reason=in_force.kept_back.reason, message=message)
    message = "The pool's gateway does not use it as it is yet."
    return Finding(PROGRAMMED, holds=None, reason="Pending", message=message)
