"""An API server in memory, as the operator's reconcile sees one: it keeps what it is told, and can refuse it."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

from support.compiling import LLAMA, NOW, SETTINGS
from support.server_side_apply import applied

from fairpool_operator.cluster import Kind
from fairpool_operator.errors import ClusterError, RejectedByServer
from fairpool_operator.reconcile import Reconciler
from fairpool_operator.store import Store
from fairpool_operator.view import Object, PoolKey

Sent = tuple[str, str, str, str | None]
"""A verb, a kind, a name, and the uid that was named."""


class Server:
    """Answers as an API server that has what is in it.

    Attributes:
        there: what is there, by kind and name.
        sent: what was written, in order.
        refuses: kinds of which nothing is taken.
        fails_with: what is raised for every write of a kind.
        fails: what is raised for the next write of a verb and a name.
        always: what becomes of every object of a kind that is applied.
        watch: told of whatever is kept, before the answer.
    """

    def __init__(self, *resources: Object) -> None:
        self.there: dict[tuple[str, str], Object] = {
            (each["kind"], each["metadata"]["name"]): each for each in resources
        }
        self.sent: list[Sent] = []
        self.refuses: set[str] = set()
        self.fails_with: dict[str, ClusterError] = {}
        self.fails: dict[tuple[str, str], ClusterError] = {}
        self.always: dict[str, Callable[[Object], Object]] = {}
        self.watch: Callable[[Object], None] = lambda found: None
        self._versions = itertools.count(10_000)

    def keep(self, found: Object) -> Object:
        """This is there now, as the newest of its name, with what was said about it."""
        said = self.there.get((found["kind"], found["metadata"]["name"]), {}).get("status", {})
        metadata = {**found["metadata"], "resourceVersion": str(next(self._versions))}
        kept = {**found, "metadata": metadata, "status": found.get("status") or said}
        self.there[found["kind"], metadata["name"]] = kept
        self.watch(kept)
        return kept

    async def get(self, kind: Kind, namespace: str | None, name: str) -> Object | None:
        """What is there."""
        return self.there.get((kind.name, name))

    get_metadata = get

    async def apply(self, kind: Kind, wanted: Object, *, status: bool = False, force: bool = True) -> Object:
        """As server-side apply does, in some time."""
        await asyncio.sleep(0)
        return self._take("status" if status else "apply", kind, wanted)

    async def merge(self, kind: Kind, patch: Object, *, status: bool = False) -> Object:
        """As a merge patch does, as far as that matters here."""
        return self._take("merge", kind, patch)

    async def create(self, kind: Kind, wanted: Object) -> Object:
        """As if nothing of the name were there."""
        await asyncio.sleep(0)
        return self._take("create", kind, wanted)

    async def delete(self, kind: Kind, namespace: str | None, name: str, uid: str) -> None:
        """Whatever has the name."""
        self.sent.append(("delete", kind.name, name, uid))
        self._try(kind.name, "delete", name)
        del self.there[kind.name, name]

    def _take(self, verb: str, kind: Kind, body: Object) -> Object:
        name = body["metadata"]["name"]
        self.sent.append((verb, kind.name, name, body["metadata"].get("uid")))
        self._try(kind.name, verb, name)
        there = self.there.get((kind.name, name))
        if verb == "status":
            assert there is not None
            return self.keep({**there, "status": body["status"]})
        return self.keep(self.always.get(kind.name, lambda made: made)(applied(body, there)))

    def _try(self, kind: str, verb: str, name: str) -> None:
        if kind in self.refuses:
            raise RejectedByServer(f"PATCH: {kind} is refused", f"{kind} is refused")
        if kind in self.fails_with:
            raise self.fails_with[kind]
        if (verb, name) in self.fails:
            raise self.fails.pop((verb, name))


def looking(
    server: Server,
    touched: Callable[[Iterable[PoolKey]], None] = lambda _: None,
    is_due: Callable[[PoolKey], bool] = lambda _: False,
) -> tuple[Store, Reconciler]:
    """What is known of all that is there, and who looks at it."""
    store = Store()
    for each in server.there.values():
        store.put(each["kind"], each)
    reconciler = Reconciler(server, store, SETTINGS, touched, is_due, identity="tests", now=lambda: NOW)  # type: ignore[arg-type]  # a cluster as far as it is asked
    return store, reconciler


def looks_at(server: Server) -> Callable[..., Awaitable[list[Sent]]]:
    """Puts resources there, looks at the pool, and returns what was written."""
    store, reconciler = looking(server)

    async def look(*edits: Any) -> list[Sent]:
        for each in edits:
            store.put(each["kind"], server.keep(each))
        server.sent.clear()
        await reconciler.reconcile(LLAMA)
        return list(server.sent)

    return look
