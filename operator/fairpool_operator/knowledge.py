"""How the store comes to know the cluster: by watches at once, by fresh lists for what watches missed.

What always holds: nothing is decided before everything has been listed once; whatever a watch missed is known after
the next list, and a watch that began anew and found anything has everything listed soon.

Where namespaces are named, each is a place that is listed by itself, and one that cannot be listed is in no other's
way: what was known of it stays. One that has been refused for a while since the start is begun without, for it may be
gone, and nobody could tell; but an API server that is away holds back everything. Whatever is in a place, nothing is
decided about its pools before all of it has been listed.
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
from fairpool_operator.errors import ClusterError, Forbidden, NotThere
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
    """What is listed, in this order, and watched. Namespaces' labels can only be read by whoever may look everywhere.

    What is referred to comes before what refers to it, so that nothing that is there seems to be missing.
    """
    kinds = [
        Followed(SECRET, LABEL),
        Followed(POD, f"app.kubernetes.io/name={GATEWAY}"),
        *(Followed(kind, _OURS) for kind in OWNED if kind is not SECRET),
        Followed(TENANT_WEIGHT),
        Followed(FAIR_POOL),
    ]
    return (Followed(NAMESPACE), *kinds) if everywhere else tuple(kinds)


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
        self._every = every
        self._doubts: dict[str | None, asyncio.Event] = {place: asyncio.Event() for place in namespaces or (None,)}
        self._unlisted = set(self._doubts)
        self._refused: set[str | None] = set()

    def is_enough_for(self, key: PoolKey) -> bool:
        """Whether a decision about this pool may be made: all that could be listed was, and all of its own place."""
        return self.synced.is_set() and key.namespace not in self._unlisted

    def heard(self, kind: Kind, happened: str | None, resource: Object) -> None:
        """A watch told of an object; `happened` is None if it was there when the watch began."""
        namespace = resource["metadata"].get("namespace")
        is_early = namespace in self._unlisted
        if happened is None or is_early:
            self._doubt(namespace)
        if is_early:
            return  # A tenant without the Secrets that it names would be one without keys.
        change = self._store.remove if happened == "DELETED" else self._store.put
        self._touched(change(kind.name, resource))

    def doubt(self) -> None:
        """Something may have been missed: list everything soon."""
        for doubt in self._doubts.values():
            doubt.set()

    def _doubt(self, namespace: str | None) -> None:
        for place, doubt in self._doubts.items():
            if place in {None, namespace}:
                doubt.set()

    async def run(self) -> None:
        """List every place, now and whenever it is due, until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            for place, doubt in self._doubts.items():
                tasks.create_task(self._keep(place, doubt))

    async def _keep(self, place: str | None, doubt: asyncio.Event) -> None:
        retry, said = _FIRST_RETRY, ""
        while True:
            doubt.clear()
            try:
                await self._list(place)
            except ClusterError as problem:
                if (advice := _advice(place, problem)) != said:
                    log.warning("%s", advice)
                said = advice
                self._failed(place, is_for_good=isinstance(problem, Forbidden | NotThere) and retry == _LAST_RETRY)
                await asyncio.sleep(retry)
                retry = min(retry * 2, _LAST_RETRY)
                continue
            retry, said = _FIRST_RETRY, ""
            self._listed(place)
            with suppress(TimeoutError):
                async with asyncio.timeout(self._every):
                    await doubt.wait()
                await asyncio.sleep(_SETTLE)

    async def _list(self, place: str | None) -> None:
        for each in self.followed:
            begun = self._store.begin()
            found = await self._cluster.list(each.kind, place, labels=each.labels)
            touched = self._store.replace(each.kind.name, found, begun, place)
            if self.synced.is_set():
                self._tally.corrections += len(touched)
            self._touched(touched)
        self._tally.lists += 1

    def _failed(self, place: str | None, *, is_for_good: bool) -> None:
        self._tally.failed_lists += 1
        if is_for_good:
            self._refused.add(place)
        else:
            self._refused.discard(place)
        self._begin()

    def _listed(self, place: str | None) -> None:
        self._unlisted.discard(place)
        self._begin()
        known = self._store.keys()
        self._touched(key for key in known if key.namespace == place)

    def _begin(self) -> None:
        """Begin once everything was listed, or is refused for good where something else is not."""
        if self._unlisted <= self._refused and self._unlisted < self._doubts.keys():
            self.synced.set()


def _advice(place: str | None, problem: ClusterError) -> str:
    if place is not None and isinstance(problem, Forbidden | NotThere):
        remedy = "give this operator its Role there, or take the namespace from its arguments"
        return f"namespace {place} cannot be listed, what was known of it stays, trying again: {problem}: {remedy}"
    if isinstance(problem, NotThere):
        return f"{problem}: install the CustomResourceDefinitions (kubectl apply -f crds/); trying again"
    return f"the cluster cannot be listed, trying again: {problem}"
