"""Whose the objects are that have the names of a pool's own.

What always holds: an object is the pool's if its controller is this very pool, or if it has none and the operator has
applied it (somebody took the owner away, which is put back); whatever else has the name is left alone. One that still
belongs to a pool of the same name that is gone will soon be gone too. What a pool that is being deleted has let go
(`kubectl delete --cascade=orphan`) is its own no more.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from fairpool_operator.differences import owned_fields
from fairpool_operator.errors import NameTaken
from fairpool_operator.resources import FairPool
from fairpool_operator.view import OWNED_KINDS, Owned, View


class Standing(Enum):
    """Whose an object is."""

    ABSENT = "nobody's: it is not there"
    OURS = "the pool's"
    LEFT_OVER = "that of a pool that is gone"
    FOREIGN = "somebody else's"


@dataclass(frozen=True, slots=True)
class Ownership:
    """Whose the object of each kind is."""

    standings: Mapping[str, Standing]

    def of(self, kind: str) -> Standing:
        """Whose the object of this kind is."""
        return self.standings.get(kind, Standing.ABSENT)

    def kinds(self, standing: Standing) -> tuple[str, ...]:
        """The kinds whose object stands so."""
        return tuple(kind for kind, each in self.standings.items() if each is standing)


def ownership(pool: FairPool, view: View) -> Ownership:
    """Look at everything that has the name of one of the pool's objects."""
    return Ownership({kind: _standing(view.owned.get(kind), pool) for kind in OWNED_KINDS})


def is_controlled_by(pool: FairPool, found: Mapping[str, Any]) -> bool:
    """Whether an object, or its metadata alone, says that it is this very pool's."""
    controller = _controller(found)
    return controller is not None and controller.get("uid") == pool.metadata.uid


def taken(pool: FairPool, view: View, owners: Ownership, wanted: frozenset[str]) -> NameTaken | None:
    """What is to be said if names of objects that are wanted are taken."""
    names = [f"{kind} {view.owned[kind].name}" for kind in owners.kinds(Standing.FOREIGN) if kind in wanted]
    if not names:
        return None
    one = len(names) == 1
    return NameTaken(
        f"{', '.join(names)} in namespace {pool.metadata.namespace} {'is' if one else 'are'} not this pool's and "
        f"{'is' if one else 'are'} left alone, so nothing new is made. Delete {'it' if one else 'them'}, or give the "
        "pool another name."
    )


def _standing(owned: Owned | None, pool: FairPool) -> Standing:
    if owned is None:
        return Standing.ABSENT
    found = owned.object()
    controller = _controller(found)
    if controller is None:
        if owned_fields(found) is None:
            return Standing.FOREIGN
        return Standing.OURS if pool.metadata.deletion_timestamp is None else Standing.LEFT_OVER
    if is_controlled_by(pool, found):
        return Standing.OURS
    group = str(controller.get("apiVersion", "")).partition("/")[0]
    if (group, controller.get("kind"), controller.get("name")) == ("fairpool.dev", "FairPool", pool.metadata.name):
        return Standing.LEFT_OVER
    return Standing.FOREIGN


def _controller(found: Mapping[str, Any]) -> Mapping[str, Any] | None:
    references = found.get("metadata", {}).get("ownerReferences") or ()
    return next((each for each in references if each.get("controller")), None)
