"""Which of a pool's objects are to be there now.

What always holds: a refused spec changes nothing. While the name of one object is somebody else's nothing new is made,
for a foreign account, role or Secret of that name must get no right and be given to no pod; what is there already is
kept up to date. A pod that mounts a Secret is not made, nor changed, while that Secret cannot be used. Each object
says in an annotation which edition of it is wanted, so that an edit which only takes something out of it differs too.
Of a pool that is being deleted nothing is made or made anew, but its configuration is kept true as long as it is there:
its gateway may serve for as long as something holds the pool back, and what a TenantWeight withdraws has to end there.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec

from fairpool_operator.compile.compiled import Removal
from fairpool_operator.compile.config import digest
from fairpool_operator.compile.facts import Facts
from fairpool_operator.compile.objects import (
    config_secret,
    deployment,
    network_policy,
    role,
    role_binding,
    service,
    service_account,
)
from fairpool_operator.compile.ownership import Standing
from fairpool_operator.compile.settings import Settings
from fairpool_operator.resources import FairPool
from fairpool_operator.view import OWNED_KINDS, Object, View

EDITION: Final = "fairpool.dev/edition"
"""The annotation with the digest of all that is wanted of the object. What was once set within a field that the server
takes as a whole, such as a network policy's peers, is recorded nowhere else: nobody could tell it from a default."""

_OPTIONAL: Final = "NetworkPolicy"


def kinds_of(pool: FairPool) -> frozenset[str]:
    """The kinds of the objects that the pool asks for."""
    asks_for_policy = pool.spec.gateway.network_policy is not None
    return frozenset(kind for kind in OWNED_KINDS if kind != _OPTIONAL or asks_for_policy)


def wanted(pool: FairPool, facts: Facts, settings: Settings) -> tuple[Object, ...]:
    """The objects that are to be there, in the order in which they are made."""
    if facts.changes_nothing:
        return ()
    if facts.is_leaving:
        if facts.packed is None or facts.owners.of("Secret") is not Standing.OURS:
            return ()
        return (_with_edition(config_secret(pool, facts.packed)),)
    writable = {Standing.OURS} if facts.taken else {Standing.OURS, Standing.ABSENT}
    made = (each for each in _all(pool, facts, settings) if facts.owners.of(each["kind"]) in writable)
    return tuple(_with_edition(each) for each in made if each["kind"] != "Deployment" or facts.gateway_may_run)


def removals_of(pool: FairPool, view: View, facts: Facts) -> tuple[Removal, ...]:
    """The pool's objects that it asks for no more."""
    if facts.changes_nothing or facts.is_leaving:
        return ()
    kept = kinds_of(pool)
    return tuple(
        Removal(kind, view.owned[kind].namespace, view.owned[kind].name, view.owned[kind].uid)
        for kind in facts.owners.kinds(Standing.OURS)
        if kind not in kept
    )


def _with_edition(wanted: Object) -> Object:
    metadata = wanted["metadata"]
    edition = digest(msgspec.json.encode(wanted, order="sorted"))
    return {**wanted, "metadata": {**metadata, "annotations": {**metadata.get("annotations", {}), EDITION: edition}}}


def _all(pool: FairPool, facts: Facts, settings: Settings) -> Iterator[Object]:
    yield service_account(pool)
    yield role(pool)
    yield role_binding(pool)
    if facts.packed is not None:
        yield config_secret(pool, facts.packed)
    yield service(pool)
    if pool.spec.gateway.network_policy is not None:
        yield network_policy(pool, pool.spec.gateway.network_policy)
    yield deployment(pool, settings)
