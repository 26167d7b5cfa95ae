"""Who shares a pool: each TenantWeight judged, those of the pool's namespace first, the oldest first among them.

What always holds: no TenantWeight can harm one of the pool's own namespace, nor one that is older, unless it is of that
namespace itself. Two for one tenant, or two with one key: the first by that order has it, the other is told so. From
another namespace a tenant needs the pool's consent, and its weight is capped by the pool; its name begins with its
namespace, so it can be taken for nobody else; where not all fit, the last of those from other namespaces are left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime

from fairpool_gateway.config import OwnQueueSettings, TenantSettings, may_name_a_tenant
from fairpool_gateway.config.quantities import format_instant, format_size
from fairpool_operator.compile.keys import NO_KEYS, Keys, keys_of
from fairpool_operator.compile.settings import Settings
from fairpool_operator.errors import ConfigTooLarge, Conflicted, Invalid, NotAllowed, Refused
from fairpool_operator.resources import FairPool, TenantWeight
from fairpool_operator.view import View


@dataclass(frozen=True, slots=True)
class Judged:
    """One TenantWeight.

    Attributes:
        resource: the TenantWeight.
        settings: its part of the configuration; None if it has none.
        refused: why it has none.
        keys: what its keys came to.
        notes: what was made of it other than it says, in sentences.
    """

    resource: TenantWeight
    settings: TenantSettings | None = None
    refused: Refused | None = None
    keys: Keys = NO_KEYS
    notes: tuple[str, ...] = ()


def judge(pool: FairPool, view: View, settings: Settings, now: datetime) -> tuple[Judged, ...]:
    """Every TenantWeight of the pool but those being deleted, in the order in which they come first."""
    owners: dict[str, TenantWeight] = {}
    taken: dict[str, str] = {}
    judged = []
    home = pool.metadata.namespace
    for weight in sorted(view.weights, key=lambda each: (each.metadata.namespace != home, each.metadata.age)):
        if weight.metadata.deletion_timestamp is not None:
            continue
        try:
            _consents(pool, weight, view, settings)
            _has_a_name_of_its_own(weight, owners)
        except Refused as refused:
            judged.append(Judged(weight, refused=refused))
            continue
        found = _tenant(pool, weight, view, taken, now)
        owners[weight.tenant] = weight
        taken.update({key.digest: _name(weight) for key in found.keys.settings})
        judged.append(found)
    return tuple(judged)


def left_out(judged: Iterable[Judged], pool: FairPool, kept: Iterable[TenantSettings]) -> tuple[Judged, ...]:
    """The same, where only some of the tenants have found room in the pool's configuration."""
    names = {each.name for each in kept}
    full = ConfigTooLarge(
        f"The configuration of pool {pool.metadata.namespace}/{pool.metadata.name} is full: one Secret does not hold "
        "all of its tenants, and those of other namespaces are left out, the newest first. Remove keys or "
        "TenantWeights that nobody needs, or ask those who run the pool to divide it.",
        "poolRef",
    )
    return tuple(
        each
        if each.settings is None or each.settings.name in names
        else replace(each, settings=None, refused=full, keys=NO_KEYS, notes=())
        for each in judged
    )


def _consents(pool: FairPool, weight: TenantWeight, view: View, settings: Settings) -> None:
    namespace = weight.metadata.namespace
    allowed = pool.spec.allowed_tenants.namespaces
    if namespace == pool.metadata.namespace or allowed.from_ == "All":
        return
    whose = f"Pool {view.key} takes no tenants from namespace {namespace}"
    if allowed.from_ == "Same":
        raise NotAllowed(
            f"{whose}, only from its own. Ask those who run it to extend spec.allowedTenants.namespaces.", "poolRef"
        )
    labels = view.namespaces.get(namespace)
    if labels is None:
        why = (
            "the labels of the namespace are not known yet"
            if settings.sees_namespaces
            else "this operator's role does not let it read the labels of namespaces, so no selector can choose one"
        )
        raise NotAllowed(f"{whose}: {why}.", "poolRef")
    if allowed.selector is None or not allowed.selector.matches(labels):
        raise NotAllowed(
            f"{whose}: its spec.allowedTenants.namespaces.selector does not choose it. Label the namespace, or ask "
            "those who run the pool.",
            "poolRef",
        )


def _has_a_name_of_its_own(weight: TenantWeight, owners: dict[str, TenantWeight]) -> None:
    if not may_name_a_tenant(weight.tenant):
        raise Invalid(
            f"{weight.tenant!r} is too long for the name of a tenant. Give a shorter spec.tenantName.", "tenantName"
        )
    if weight.tenant in owners:
        raise Conflicted(
            f"The older TenantWeight {_name(owners[weight.tenant])} is for tenant {weight.tenant} already. Remove one "
            "of the two, or make this one again with another spec.tenantName.",
            "tenantName",
        )


def _tenant(pool: FairPool, weight: TenantWeight, view: View, taken: dict[str, str], now: datetime) -> Judged:
    in_force, notes = _weight_of(pool, weight)
    queue, more_notes = _queue_of(pool, weight)
    keys = keys_of(weight, view, taken, now)
    used = keys.settings
    if pool.spec.authentication.type != "APIKey":
        keys, used = NO_KEYS, ()
        if weight.spec.api_keys:
            more_notes = (*more_notes, "Its keys are not used, for a proxy names the pool's tenants: remove them.")
    elif not weight.spec.api_keys:
        more_notes = (*more_notes, "It has no key, so it can send no request: add one to spec.apiKeys.")
    settings = TenantSettings(name=weight.tenant, weight=in_force, keys=used, queue=queue, suspend=weight.spec.suspend)
    return Judged(weight, settings, keys=keys, notes=(*notes, *more_notes, *_ended(keys)))


def _weight_of(pool: FairPool, weight: TenantWeight) -> tuple[int, tuple[str, ...]]:
    asked = weight.spec.weight or pool.spec.default_weight
    most = pool.spec.allowed_tenants.max_weight
    if weight.metadata.namespace == pool.metadata.namespace or asked <= most:
        return asked, ()
    return most, (f"Its weight {asked} is capped at {most}, the most that the pool gives to other namespaces.",)


def _queue_of(pool: FairPool, weight: TenantWeight) -> tuple[OwnQueueSettings, tuple[str, ...]]:
    """Its own bounds; room for the largest request is always given, or such requests could never wait."""
    queue, least = weight.spec.queue, pool.spec.queue.max_request_bytes
    if queue.max_bytes is None or queue.max_bytes >= least:
        return queue, ()
    note = f"Its queue.maxBytes is raised to {format_size(least)}, the largest request that the pool takes."
    return queue.model_copy(update={"max_bytes": least}), (note,)


def _ended(keys: Keys) -> Iterator[str]:
    ends = {key.name: key.not_after for key in keys.settings}
    for name in keys.ended:
        end = ends[name]
        assert end is not None
        yield f"Key {name} ended at {format_instant(end)}: remove it."


def _name(weight: TenantWeight) -> str:
    return f"{weight.metadata.namespace}/{weight.metadata.name}"
