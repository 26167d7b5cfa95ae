"""What one look sends to the API server: whatever is written names the very object that it is meant for."""

from __future__ import annotations

import pytest
from support.compiling import LLAMA
from support.reconciling import looking
from support.resources import fair_pool, metadata, tenant_weight

from fairpool_operator import saying
from fairpool_operator.errors import ClusterUnavailable
from fairpool_operator.view import OWNED_KINDS

PODS, TEAM = {"podSelector": {"matchLabels": {"p": "1"}}}, {"namespaceSelector": {"matchLabels": {"team": "a"}}}
TAKEN_OUT = {
    "a part of a peer": (
        {"networkPolicy": {"tenants": [{**PODS, **TEAM}]}},
        {"networkPolicy": {"tenants": [PODS]}},
        ("NetworkPolicy", "ingress", 0, "from", 0),
    ),
    "every peer": (
        {"networkPolicy": {"tenants": [PODS]}},
        {"networkPolicy": {"tenants": []}},
        ("NetworkPolicy", "ingress", 0, "from"),
    ),
    "a part of a node selector": (
        {"podTemplate": {"nodeSelector": {"zone": "a", "disk": "ssd"}}},
        {"podTemplate": {"nodeSelector": {"zone": "a"}}},
        ("Deployment", "template", "spec", "nodeSelector"),
    ),
}


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


class TestWhatNobodyTellsOf:
    async def test_is_judged_as_it_is_now_though_another_was_there_before(self, server, look):
        foreign = {"kind": "ServiceAccount", "metadata": metadata("llama-fairpool", uid="the-first")}
        server.keep(foreign)
        sent = await look()
        assert {verb for verb, *_ in sent} == {"create", "status"}
        owner = {"apiVersion": "fairpool.dev/v1alpha1", "kind": "FairPool", "name": "llama", "controller": True}
        theirs = [{**owner, "uid": server.there["FairPool", "llama"]["metadata"]["uid"]}]
        server.keep({**foreign, "metadata": metadata("llama-fairpool", uid="the-second", ownerReferences=theirs)})
        sent = await look()
        assert ("apply", "ServiceAccount", "llama-fairpool", "the-second") in sent
        assert {kind for verb, kind, *_ in sent if verb == "apply"} == {*OWNED_KINDS}


class TestStatuses:
    MANY = 40

    @pytest.fixture
    def many(self, server):
        for number in range(self.MANY):
            server.keep(tenant_weight(f"t{number}"))

    async def test_are_broken_off_for_a_newer_edit_and_said_after_it(self, server, many, monkeypatch):
        monkeypatch.setattr(saying, "_HURRY_SECONDS", 0.0)
        due = {LLAMA}
        _, reconciler = looking(server, is_due=due.__contains__)
        assert await reconciler.reconcile(LLAMA) == 0.0
        said = [name for verb, kind, name, _ in server.sent if (verb, kind) == ("status", "TenantWeight")]
        assert 0 < len(said) < self.MANY
        assert ("status", "FairPool", "llama") in {(verb, kind, name) for verb, kind, name, _ in server.sent}
        due.clear()
        assert await reconciler.reconcile(LLAMA) is None
        said = [name for verb, kind, name, _ in server.sent if (verb, kind) == ("status", "TenantWeight")]
        assert sorted(said) == sorted({*said, "search", *(f"t{number}" for number in range(self.MANY))})

    @pytest.mark.parametrize("first", ["the answer", "a watch"])
    async def test_are_not_broken_off_by_what_the_operator_itself_hears_of_them(self, server, many, monkeypatch, first):
        monkeypatch.setattr(saying, "_HURRY_SECONDS", 0.0)
        due = {LLAMA}
        store, reconciler = looking(server, due.update, due.__contains__)
        if first == "a watch":
            server.watch = lambda found: due.update(store.put(found["kind"], found))
        looks = 0
        while due:
            due.clear()
            looks += 1
            await reconciler.reconcile(LLAMA)
        # One that makes the objects, and one that is due for what their answers tell.
        assert looks <= 2
        assert len([each for each in server.sent if each[:2] == ("status", "TenantWeight")]) <= self.MANY + 10

    async def test_tell_in_their_answers_of_edits_that_no_watch_has_told_of(self, server):
        due = set()
        store, reconciler = looking(server, due.update, due.__contains__)
        for _ in range(2):
            await reconciler.reconcile(LLAMA)
        store.put("TenantWeight", server.keep(tenant_weight(status={"tenant": "wiped"})))
        server.keep(tenant_weight(weight=7, meta={"generation": 2}))
        due.clear()
        await reconciler.reconcile(LLAMA)
        assert due == {LLAMA}
        await reconciler.reconcile(LLAMA)
        assert server.there["TenantWeight", "search"]["status"]["weight"] == 7

    async def test_that_fail_end_the_look_with_the_error_itself(self, server, many, look):
        server.fails["status", "t7"] = ClusterUnavailable("PATCH: no answer")
        with pytest.raises(ClusterUnavailable, match="no answer"):
            await look()


class TestWhatIsTakenOutOfAPool:
    @pytest.mark.parametrize("case", TAKEN_OUT)
    async def test_is_written_although_all_that_is_wanted_is_there(self, server, look, case):
        before, after, path = TAKEN_OUT[case]
        await look(fair_pool(gateway=before))
        await look()
        await look(fair_pool(gateway=after))
        kind, *steps = path
        found = next(each for (name, _), each in server.there.items() if name == kind)["spec"]
        for step in steps:
            found = found.get(step) if isinstance(found, dict) else found[step]
        assert found in (None, []) or len(found) == 1, found
