"""One decision about one pool: from what is there to what is wanted and said.

What always holds: the same view gives the same decision, and nothing that the API server admits makes it fail. What
cannot be used is said in a condition and changes nothing: the last good configuration stays in force, and what runs
runs on.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime

from fairpool_gateway.config import TenantSettings
from fairpool_operator.compile.compiled import Compiled, Event, PoolStatus, Refusal, TenantStatus
from fairpool_operator.compile.config import Packed, configured, settings_of
from fairpool_operator.compile.events import events
from fairpool_operator.compile.facts import Facts
from fairpool_operator.compile.gateways import live_report
from fairpool_operator.compile.ownership import ownership, taken
from fairpool_operator.compile.pool_status import pool_status
from fairpool_operator.compile.references import References, resolve
from fairpool_operator.compile.rollouts import rollout
from fairpool_operator.compile.settings import Settings
from fairpool_operator.compile.tenant_status import (
    InForce,
    pool_not_found,
    pool_unread,
    tenant_status,
    with_unread_pool,
    without_pool,
)
from fairpool_operator.compile.tenants import Judged, judge, left_out
from fairpool_operator.compile.unread import unread_pool, unread_weight
from fairpool_operator.compile.wanted import kinds_of, removals_of, wanted
from fairpool_operator.errors import ObjectRefused, Refused
from fairpool_operator.resources import FairPool, TenantWeight
from fairpool_operator.view import Unread, View, object_name


def compile_pool(view: View, settings: Settings, now: datetime) -> Compiled:
    """What is wanted for a pool, and what is to be said about it and its TenantWeights."""
    if view.pool is not None:
        compiled = _with_pool(view.pool, view, settings, now)
    elif view.unread_pool is not None:
        compiled = _with_unread_pool(view.unread_pool, view, now)
    else:
        compiled = _without_pool(view, settings, now)
    unread = tuple(TenantStatus(each.metadata, unread_weight(each, now)) for each in view.unread_weights)
    told = (*compiled.events, *_tenant_events(view, unread))
    return replace(compiled, tenant_statuses=(*compiled.tenant_statuses, *unread), events=told)


def _with_pool(pool: FairPool, view: View, settings: Settings, now: datetime) -> Compiled:
    references = resolve(pool, view)
    judged = judge(pool, view, settings, now)
    packed, refused = _packed(pool, references, judged)
    if packed is not None:
        judged = left_out(judged, pool, packed.config.tenants)
    owners = ownership(pool, view)
    is_leaving = pool.metadata.deletion_timestamp is not None
    facts = Facts(
        references,
        refused,
        taken(pool, view, owners, kinds_of(pool)),
        _rejected(view),
        _delayed(view),
        owners,
        packed,
        is_leaving=is_leaving,
    )
    objects = wanted(pool, facts, settings)
    said = PoolStatus(pool.metadata, pool_status(pool, view, facts, judged, rollout(view, owners, objects), now))
    tenants = _tenant_statuses(pool, view, facts, judged, now)
    ends = [each.keys.next_end for each in judged if each.keys.next_end is not None]
    return Compiled(
        config=packed.config if packed else None,
        config_hash=packed.hash if packed else None,
        objects=objects,
        removals=removals_of(pool, view, facts),
        pool_status=said,
        tenant_statuses=tenants,
        refusals=tuple(_refusals(pool, facts, judged)),
        events=(*(() if is_leaving else _pool_events(view, said)), *_tenant_events(view, tenants)),
        changes_at=min(ends, default=None),
    )


def _packed(pool: FairPool, references: References, judged: Sequence[Judged]) -> tuple[Packed | None, Refused | None]:
    """The pool's configuration, or why there is none: it is refused, or its references are not resolved yet."""
    needs_proxy = pool.spec.authentication.type == "TrustedHeader" and references.proxy_credential is None
    if needs_proxy and references.problems:
        return None, None
    try:
        fields = settings_of(pool, references)
        return configured(fields, *_own_and_others(pool, judged)), None
    except Refused as refused:
        return None, refused


def _own_and_others(pool: FairPool, judged: Sequence[Judged]) -> tuple[list[TenantSettings], list[TenantSettings]]:
    """The tenants of the pool's own namespace, and those of all others, each in the order in which they come first."""
    home = pool.metadata.namespace
    own: list[TenantSettings] = []
    others: list[TenantSettings] = []
    for each in judged:
        if each.settings is not None:
            (own if each.resource.metadata.namespace == home else others).append(each.settings)
    return own, others


def _rejected(view: View) -> ObjectRefused | None:
    said = _said(view, is_for_good=True)
    if not said:
        return None
    return ObjectRefused(
        f"The API server does not take what the pool needs. {said} Correct the pool, or what in the cluster forbids "
        "it, or delete an object that cannot be changed; it is tried again every minute."
    )


def _delayed(view: View) -> str:
    said = _said(view, is_for_good=False)
    return f"{said} It is tried again, at the latest after a minute." if said else ""


def _said(view: View, *, is_for_good: bool) -> str:
    """What could not be written, each with its reason; empty where there is nothing."""
    unwritten = (each for each in view.unwritten if each.is_for_good is is_for_good)
    return " ".join(f"{each.kind} {object_name(each.kind, view.key.name)}: {each.words}" for each in unwritten)


def _tenant_statuses(
    pool: FairPool, view: View, facts: Facts, judged: Sequence[Judged], now: datetime
) -> tuple[TenantStatus, ...]:
    report = live_report(pool, view)
    newest = facts.packed is not None and report is not None and report.config_hash == facts.packed.hash
    kept_back = facts.refused or next(iter(facts.references.problems), None) if facts.packed is None else None
    in_force = InForce(is_newest=newest, kept_back=kept_back)
    return tuple(TenantStatus(each.resource.metadata, tenant_status(each, view.key, in_force, now)) for each in judged)


def _refusals(pool: FairPool, facts: Facts, judged: Sequence[Judged]) -> Iterator[Refusal]:
    for problem in (facts.refused, facts.taken, facts.rejected, *facts.references.problems):
        if problem is not None:
            yield Refusal("FairPool", pool.metadata, problem)
    for each in judged:
        problems = each.keys.problems if each.refused is None else (each.refused,)
        yield from (Refusal("TenantWeight", each.resource.metadata, problem) for problem in problems)


def _with_unread_pool(pool: Unread, view: View, now: datetime) -> Compiled:
    said = PoolStatus(pool.metadata, unread_pool(pool, now))
    problem = pool_unread(view.key)
    statuses = tuple(TenantStatus(each.metadata, with_unread_pool(each, problem, now)) for each in _staying(view))
    return Compiled(
        pool_status=said,
        tenant_statuses=statuses,
        events=(*_pool_events(view, said), *_tenant_events(view, statuses)),
    )


def _without_pool(view: View, settings: Settings, now: datetime) -> Compiled:
    weights = _staying(view)
    problem = pool_not_found(view.key, settings)
    statuses = tuple(TenantStatus(each.metadata, without_pool(each, problem, now)) for each in weights)
    refusals = tuple(Refusal("TenantWeight", each.metadata, problem) for each in weights)
    return Compiled(tenant_statuses=statuses, refusals=refusals, events=_tenant_events(view, statuses))


def _staying(view: View) -> list[TenantWeight]:
    """The TenantWeights that are not being deleted, the oldest first."""
    by_age = sorted(view.weights, key=lambda each: each.metadata.age)
    return [each for each in by_age if each.metadata.deletion_timestamp is None]


def _pool_events(view: View, said: PoolStatus) -> tuple[Event, ...]:
    before = view.pool.status.conditions if view.pool else view.unread_pool.conditions if view.unread_pool else ()
    return tuple(events("FairPool", said.metadata, said.status.conditions, before))


def _tenant_events(view: View, statuses: Sequence[TenantStatus]) -> tuple[Event, ...]:
    before = {each.metadata.uid: each.status.conditions for each in view.weights}
    before |= {each.metadata.uid: each.conditions for each in view.unread_weights}
    return tuple(
        event
        for each in statuses
        for event in events("TenantWeight", each.metadata, each.status.conditions, before[each.metadata.uid])
    )
