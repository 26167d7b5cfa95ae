"""What has to be written, of all that is wanted: only what is not so already.

What always holds: once everything here has been written, there is nothing more to write.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from fairpool_operator.compile.compiled import Compiled, PoolStatus, Removal, TenantStatus
from fairpool_operator.compile.said import says
from fairpool_operator.compile.wanted import EDITION
from fairpool_operator.differences import difference
from fairpool_operator.resources import TenantWeight
from fairpool_operator.view import Object, Unread, View, hashed


@dataclass(frozen=True, slots=True)
class Apply:
    """An object to apply, and the paths at which it differs from what is there.

    `uid` is that of what is there, to be named when it is applied, so that nothing else of the name is written; None:
    nothing of the name is known, so whoever makes it looks first.
    """

    wanted: Object
    uid: str | None
    paths: tuple[str, ...]

    @property
    def kind(self) -> str:
        """What it is called in manifests."""
        kind: str = self.wanted["kind"]
        return kind

    @property
    def edition(self) -> str:
        """By which what is wanted is told from what was wanted before."""
        edition: str = self.wanted["metadata"]["annotations"][EDITION]
        return edition


@dataclass(frozen=True, slots=True)
class Changes:
    """What has to be written, in this order."""

    applies: tuple[Apply, ...] = ()
    removals: tuple[Removal, ...] = ()
    tenant_statuses: tuple[TenantStatus, ...] = ()
    pool_status: PoolStatus | None = None

    @property
    def of_objects(self) -> tuple[Apply | Removal, ...]:
        """Those that are written before anything is said.

        The configuration first, where it is there already: what it withdraws is to wait for nothing.
        """
        applies = sorted(self.applies, key=lambda each: each.kind != "Secret" or each.uid is None)
        return *applies, *self.removals

    def __bool__(self) -> bool:
        return bool(self.applies or self.removals or self.tenant_statuses or self.pool_status)


def changes(compiled: Compiled, view: View) -> Changes:
    """What is wanted and not so."""
    return Changes(
        tuple(_applies(compiled.objects, view)),
        compiled.removals,
        tuple(_tenants_that_differ(compiled, view)),
        compiled.pool_status if compiled.pool_status and _pool_differs(compiled.pool_status, view) else None,
    )


def _applies(objects: Iterable[Object], view: View) -> Iterable[Apply]:
    for wanted in objects:
        owned = view.owned.get(wanted["kind"])
        if owned is None:
            yield Apply(wanted, None, ("metadata",))
            continue
        paths = difference(hashed(wanted) if wanted["kind"] == "Secret" else wanted, owned.object())
        if paths:
            yield Apply(wanted, owned.uid, paths)


def _pool_differs(said: PoolStatus, view: View) -> bool:
    pool = view.pool or view.unread_pool
    return pool is None or not says(pool, said)


def _tenants_that_differ(compiled: Compiled, view: View) -> Iterator[TenantStatus]:
    there: dict[str, TenantWeight | Unread] = {each.metadata.uid: each for each in view.weights}
    there |= {each.metadata.uid: each for each in view.unread_weights}
    return (said for said in compiled.tenant_statuses if not says(there[said.metadata.uid], said))
