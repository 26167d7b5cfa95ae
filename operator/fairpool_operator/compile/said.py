"""What is to be said about a resource, beside what its status says already.

What always holds: only what the operator itself writes counts. What others add to a status is never in the way: the
conditions of somebody else's types, and what a gateway reports.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from fairpool_operator.compile import aspects
from fairpool_operator.compile.compiled import PoolStatus, TenantStatus
from fairpool_operator.resources import Condition, FairPool, FairPoolStatus, TenantWeight, TenantWeightStatus
from fairpool_operator.view import Unread

Said = PoolStatus | TenantStatus
Resource = FairPool | TenantWeight | Unread


def says(resource: Resource, said: Said) -> bool:
    """Whether a resource says this already."""
    if isinstance(resource, Unread):
        return _ours(said.status.conditions) == _ours(resource.conditions)
    return _written(said.status) == _written(resource.status)


def is_all_that_happened(said: Said, before: Resource | None, after: Resource | None) -> bool:
    """Whether a resource is as it was before, but that it says this now."""
    if before is None or after is None:
        return False
    return says(after, said) and _without_said(before) == _without_said(after)


def edition_of(said: Said) -> str:
    """By which what is said of this very resource is told from what was said before; the times in it do not count."""
    timeless = [each.model_copy(update={"last_transition_time": ""}) for each in said.status.conditions]
    return said.metadata.uid + said.status.model_copy(update={"conditions": tuple(timeless)}).model_dump_json()


def _written(status: FairPoolStatus | TenantWeightStatus) -> FairPoolStatus | TenantWeightStatus:
    conditions = _ours(status.conditions)
    if isinstance(status, FairPoolStatus):
        return status.model_copy(update={"conditions": conditions, "gateway": None})
    return status.model_copy(update={"conditions": conditions})


def _ours(conditions: Iterable[Condition]) -> tuple[Condition, ...]:
    """The conditions that the operator writes, in one order."""
    return tuple(sorted((each for each in conditions if each.type in aspects.ALL), key=lambda each: each.type))


def _without_said(resource: Resource) -> Resource:
    """What a decision depends on, but for what the operator itself has said."""
    if isinstance(resource, Unread):
        return replace(resource, conditions=())
    if isinstance(resource, FairPool):
        return resource.model_copy(update={"status": FairPoolStatus(gateway=resource.status.gateway)})
    return resource.model_copy(update={"status": TenantWeightStatus()})
