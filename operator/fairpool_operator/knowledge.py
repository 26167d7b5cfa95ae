"""How the store comes to know the cluster: by watches at once, by fresh lists for what watches missed.

What always holds: nothing is decided before everything has been listed once; whatever a watch missed is known after
the next list, and a watch that began anew and found anything has everything listed soon.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Final

from fairpool_operator.cluster import (
    FAIR_POOL,
    NAMESPACE,
    OWNED,
    POD,
    SECRET,
    TENANT_WEIGHT,
    Cluster,
    Kind,
)
from fairpool_operator.errors import ClusterError, NotThere
from fairpool_operator.handlers import Followed
from fairpool_operator.metrics import Tally
from fairpool_operator.store import Store
from fairpool_operator.view import GATEWAY, LABEL, MANAGED, Object, PoolKey

log = logging.getLogger(__name__)

_OURS: Final = "=".join(MANAGED)
_SETTLE: Final = 1.0
"""Seconds from a watch that began anew to the list: several begin together."""
_FIRST_RETRY, _LAST_RETRY = 0.5, 8.0


def followed(*, everywhere: bool) -> tuple[Followed, ...]:
    """What is listed and watched. Namespaces' labels can only be read by whoever may look everywhere."""
    kinds = [
        Followed(FAIR_POOL),
        Followed(TENANT_WEIGHT),
        Followed(SECRET, LABEL),
        Followed(POD, f"app.kubernetes.io/name={GATEWAY}"),
        *(Followed(kind, _OURS) for kind in OWNED if kind is not SECRET),
    ]
    return (*kinds, Followed(NAMESPACE)) if everywhere else tuple(kinds)


class Knowledge:
    """Keeps a store up to date, and says which pools have to be looked at for it."""

    def __init__(
        self,
        store: Store,
        cluster: Cluster,
        touched: Callable[[Iterable[PoolKey]], None],
        tally: Tally,
        *,
        namespaces: Sequence[str] = (),
        every: float,
    ) -> None:
        self.followed = followed(everywhere=not namespaces)
        self.synced = asyncio.Event()
        self._store = store
        self._cluster = cluster
        self._touched = touched
        self._tally = tally
        self._namespaces: tuple[str | None, ...] = tuple(namespaces) or (None,)
        self._every = every
        self._doubt = asyncio.Event()

    def heard(self, kind: Kind, happened: str | None, resource: Object) -> None:
        """A watch told of an object; `happened` is None if it was there when the watch began."""
        if happened is None:
            self._doubt.set()
        change = self._store.remove if happened == "DELETED" else self._store.put
        self._touched(change(kind.name, resource))

    def doubt(self) -> None:
        """Something may have been missed: list everything soon."""
        self._doubt.set()

    async def run(self) -> None:
        """List everything, now and whenever it is due, until cancelled."""
        retry = _FIRST_RETRY
        while True:
            try:
                await self._list()
            except ClusterError as problem:
                log.warning("%s", _advice(problem))
                await asyncio.sleep(retry)
                retry = min(retry * 2, _LAST_RETRY)
                continue
            retry = _FIRST_RETRY
            self.synced.set()
            with suppress(TimeoutError):
                async with asyncio.timeout(self._every):
                    await self._doubt.wait()
                await asyncio.sleep(_SETTLE)

    async def _list(self) -> None:
        self._doubt.clear()
        for each in self.followed:
            begun = self._store.begin()
            places = self._namespaces if each.kind.namespaced else (None,)
            found = [
                resource
                for place in places
                for resource in await self._cluster.list(each.kind, place, labels=each.labels)
            ]
            touched = self._store.replace(each.kind.name, found, begun)
            if self.synced.is_set():
                self._tally.corrections += len(touched)
            self._touched(touched)
        self._tally.lists += 1


def _advice(problem: ClusterError) -> str:
    if isinstance(problem, NotThere):
        return f"{problem}: install the CustomResourceDefinitions (kubectl apply -f crds/); trying again"
    return f"the cluster cannot be listed, trying again: {problem}"
