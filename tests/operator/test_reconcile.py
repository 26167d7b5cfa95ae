"""What one look sends to the API server: whatever is written names the very object that it is meant for."""

from __future__ import annotations

import itertools

import pytest
from support.compiling import LLAMA, NOW, SETTINGS
from support.resources import fair_pool, tenant_weight
from support.server_side_apply import applied

from fairpool_operator.errors import RejectedByServer
from fairpool_operator.reconcile import Reconciler
from fairpool_operator.store import Store
from fairpool_operator.view import OWNED_KINDS


class Server:
    """Answers as an API server that has what is in it, keeps what it is told, and refuses some kinds."""

    def __init__(self, *resources):
        self.there = {(each["kind"], each["metadata"]["name"]): each for each in resources}
        self.sent = []
        self.refuses = set()
        self._versions = itertools.count(10_000)

    def keep(self, found):
        """This is there now, as the newest of its name, with what was said about it."""
        said = self.there.get((found["kind"], found["metadata"]["name"]), {}).get("status", {})
        metadata = {**found["metadata"], "resourceVersion": str(next(self._versions))}
        kept = {**found, "metadata": metadata, "status": found.get("status") or said}
        self.there[found["kind"], metadata["name"]] = kept
        return kept

    async def get(self, kind, namespace, name):
        return self.there.get((kind.name, name))

    async def apply(self, kind, wanted, *, status=False):
        return self._take("status" if status else "apply", kind, wanted)

    async def merge(self, kind, patch, *, status=False):
        return self._take("merge", kind, patch)

    async def create(self, kind, wanted):
        return self._take("create", kind, wanted)

    async def delete(self, kind, namespace, name, uid):
        self.sent.append(("delete", kind.name, name, uid))
        del self.there[kind.name, name]

    def _take(self, verb, kind, body):
        name = body["metadata"]["name"]
        self.sent.append((verb, kind.name, name, body["metadata"].get("uid")))
        if kind.name in self.refuses:
            raise RejectedByServer(f"PATCH: {kind.name} is refused", f"{kind.name} is refused")
        there = self.there.get((kind.name, name))
        return self.keep({**there, "status": body["status"]} if verb == "status" else applied(body, there))


@pytest.fixture
def server():
    return Server(fair_pool(gateway={"networkPolicy": {}}), tenant_weight())


@pytest.fixture
def look(server):
    """Looks at the pool; returns what was sent."""
    store = Store()
    for each in server.there.values():
        store.put(each["kind"], each)
    reconciler = Reconciler(server, store, SETTINGS, lambda _: None, identity="tests", now=lambda: NOW)

    async def look(*edits):
        for each in edits:
            store.put(each["kind"], server.keep(each))
        server.sent.clear()
        await reconciler.reconcile(LLAMA)
        return list(server.sent)

    return look


class TestWhatIsWritten:
    async def test_names_the_uid_of_what_is_there_whatever_becomes_of_it(self, server, look):
        made = await look()
        assert {uid for verb, _, _, uid in made if verb == "apply"} == {None}
        there = dict(server.there)
        edited = await look(fair_pool(gateway={"drainTimeout": "1m"}), tenant_weight(weight=7))
        assert {(verb, kind) for verb, kind, _, _ in edited} == {
            ("apply", "Secret"),
            ("apply", "Deployment"),
            ("delete", "NetworkPolicy"),
            ("status", "FairPool"),
            ("status", "TenantWeight"),
        }
        for _, kind, name, uid in edited:
            assert uid == there[kind, name]["metadata"]["uid"]

    async def test_is_nothing_once_all_is_as_it_is_wanted(self, look):
        looks = [len(await look()) for _ in range(4)]
        assert looks[0] > 0
        assert looks[-1] == 0


class TestWhatIsRefused:
    async def test_is_said_and_keeps_nothing_else_from_being_written(self, server, look):
        server.refuses = {"Role"}
        with pytest.raises(RejectedByServer, match="Role is refused"):
            await look()
        written = {kind for verb, kind, _, _ in server.sent if verb in {"apply", "status"}}
        assert written == {*OWNED_KINDS, "FairPool", "TenantWeight"}
        accepted = server.there["FairPool", "llama"]["status"]["conditions"][0]
        assert (accepted["type"], accepted["status"], accepted["reason"]) == ("Accepted", "False", "ObjectRefused")
        assert "Role llama-fairpool: Role is refused" in accepted["message"]

    async def test_is_tried_again_and_said_no_more_once_it_is_taken(self, server, look):
        server.refuses = {"Role"}
        with pytest.raises(RejectedByServer):
            await look()
        server.refuses = set()
        await look()
        accepted = server.there["FairPool", "llama"]["status"]["conditions"][0]
        assert (accepted["type"], accepted["status"]) == ("Accepted", "True")

    async def test_as_an_event_is_in_no_ones_way(self, server, look):
        server.refuses = {"Event"}
        sent = await look(tenant_weight("a", tenantName="search"))
        assert ("create", "Event") in {(verb, kind) for verb, kind, _, _ in sent}
        assert {name for verb, kind, name, _ in sent if (verb, kind) == ("status", "TenantWeight")} == {"a", "search"}

    async def test_as_one_status_keeps_none_of_the_others_back(self, server, look):
        server.refuses = {"TenantWeight"}
        with pytest.raises(RejectedByServer):
            await look(tenant_weight("b"))
        assert {name for verb, kind, name, _ in server.sent if kind == "TenantWeight"} == {"b", "search"}
        assert server.there["FairPool", "llama"]["status"]["tenants"] == 2
