"""What one look sends to the API server: whatever is written names the very object that it is meant for."""

from __future__ import annotations

import itertools

import pytest
from support.compiling import LLAMA, NOW, SETTINGS
from support.resources import fair_pool, metadata, tenant_weight
from support.server_side_apply import applied

from fairpool_operator import reconcile
from fairpool_operator.contests import AT_ONCE
from fairpool_operator.errors import (
    ClusterUnavailable,
    Conflict,
    Forbidden,
    NotNow,
    NotThere,
    RejectedByServer,
)
from fairpool_operator.reconcile import Reconciler
from fairpool_operator.store import Store
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


class Server:
    """Answers as an API server that has what is in it, keeps what it is told, and refuses some kinds."""

    def __init__(self, *resources):
        self.there = {(each["kind"], each["metadata"]["name"]): each for each in resources}
        self.sent = []
        self.refuses = set()
        self.is_asked_in_vain = {}
        self.always = {}
        self.fails = {}
        self.watch = lambda found: None
        self._versions = itertools.count(10_000)

    def keep(self, found):
        """This is there now, as the newest of its name, with what was said about it."""
        said = self.there.get((found["kind"], found["metadata"]["name"]), {}).get("status", {})
        metadata = {**found["metadata"], "resourceVersion": str(next(self._versions))}
        kept = {**found, "metadata": metadata, "status": found.get("status") or said}
        self.there[found["kind"], metadata["name"]] = kept
        self.watch(kept)
        return kept

    async def get(self, kind, namespace, name):
        return self.there.get((kind.name, name))

    get_metadata = get

    async def apply(self, kind, wanted, *, status=False, force=True):
        return self._take("status" if status else "apply", kind, wanted)

    async def merge(self, kind, patch, *, status=False):
        return self._take("merge", kind, patch)

    async def create(self, kind, wanted):
        return self._take("create", kind, wanted)

    async def delete(self, kind, namespace, name, uid):
        self.sent.append(("delete", kind.name, name, uid))
        if kind.name in self.is_asked_in_vain:
            raise self.is_asked_in_vain[kind.name]
        del self.there[kind.name, name]

    def _take(self, verb, kind, body):
        name = body["metadata"]["name"]
        self.sent.append((verb, kind.name, name, body["metadata"].get("uid")))
        if kind.name in self.refuses:
            raise RejectedByServer(f"PATCH: {kind.name} is refused", f"{kind.name} is refused")
        if kind.name in self.is_asked_in_vain:
            raise self.is_asked_in_vain[kind.name]
        if (verb, name) in self.fails:
            raise self.fails.pop((verb, name))
        there = self.there.get((kind.name, name))
        if verb == "status":
            return self.keep({**there, "status": body["status"]})
        return self.keep(self.always.get(kind.name, lambda made: made)(applied(body, there)))


@pytest.fixture
def server():
    return Server(fair_pool(gateway={"networkPolicy": {}}), tenant_weight())


def looking(server, touched=lambda _: None, is_due=lambda _: False):
    """What is known of all that is there, and who looks at it."""
    store = Store()
    for each in server.there.values():
        store.put(each["kind"], each)
    return store, Reconciler(server, store, SETTINGS, touched, is_due, identity="tests", now=lambda: NOW)


@pytest.fixture
def look(server):
    """Looks at the pool; returns what was sent."""
    store, reconciler = looking(server)

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

    @pytest.mark.parametrize(
        ("answer", "status", "reason"),
        [
            (Forbidden("DELETE: 403", "no policy is removed here"), "False", "ObjectRefused"),
            (NotNow("DELETE: 500", "no policy is removed here"), "Unknown", "ObjectPending"),
        ],
    )
    async def test_as_a_removal_is_said_and_keeps_no_status_from_being_said(self, server, look, answer, status, reason):
        await look()
        server.is_asked_in_vain["NetworkPolicy"] = answer
        with pytest.raises(type(answer)):
            await look(fair_pool(gateway={}), tenant_weight("b"))
        accepted = server.there["FairPool", "llama"]["status"]["conditions"][0]
        assert (accepted["status"], accepted["reason"]) == (status, reason)
        assert "it is to be removed: no policy is removed here" in accepted["message"]
        assert server.there["TenantWeight", "b"]["status"]["conditions"][0]["status"] == "True"

    @pytest.mark.parametrize("failure", [Conflict("PATCH: 409"), NotThere("PATCH: 404")])
    @pytest.mark.parametrize("name", ["search", "llama"])
    async def test_as_a_status_of_another_version_is_an_error_and_said_at_the_next_look(
        self, server, look, name, failure
    ):
        server.fails["status", name] = failure
        with pytest.raises(type(failure)):
            await look()
        assert ("status", name) in {(verb, name) for verb, _, name, _ in await look()}
        assert len(await look()) == 0


class TestWhatCannotBeTakenJustNow:
    """The API server answers, with 500 or the like: a webhook that it has to ask is away."""

    AWAY = NotNow("PATCH: 500", "failed calling webhook")

    @pytest.mark.parametrize("kind", sorted(OWNED_KINDS))
    async def test_is_said_to_be_on_its_way_and_keeps_nothing_else_from_being_written(self, server, look, kind):
        server.is_asked_in_vain[kind] = self.AWAY
        with pytest.raises(NotNow):
            await look()
        written = {kind for verb, kind, _, _ in server.sent if verb in {"apply", "status"}}
        assert written == {*OWNED_KINDS, "FairPool", "TenantWeight"}
        said = {each["type"]: each for each in server.there["FairPool", "llama"]["status"]["conditions"]}
        assert (said["Accepted"]["status"], said["Accepted"]["reason"]) == ("Unknown", "ObjectPending")
        assert "failed calling webhook" in said["Accepted"]["message"]
        assert said["Ready"]["status"] != "True"
        assert "Stalled" not in said
        server.is_asked_in_vain.clear()
        await look()
        accepted = server.there["FairPool", "llama"]["status"]["conditions"][0]
        assert (accepted["type"], accepted["status"]) == ("Accepted", "True")

    @pytest.mark.parametrize("answer", [AWAY, Forbidden("PATCH: 403", "no")], ids=["away", "forbidden"])
    async def test_as_one_status_keeps_none_of_the_others_back(self, server, look, answer):
        server.fails["status", "search"] = answer
        others = [tenant_weight(f"t{number}") for number in range(20)]
        with pytest.raises(type(answer)):
            await look(*others)
        said = {name for verb, kind, name, _ in server.sent if verb == "status"}
        assert said == {"llama", "search", *(f"t{number}" for number in range(20))}

    async def test_as_an_event_is_in_no_ones_way(self, server, look):
        server.is_asked_in_vain["Event"] = self.AWAY
        sent = await look(tenant_weight("a", tenantName="search"))
        assert ("create", "Event") in {(verb, kind) for verb, kind, _, _ in sent}
        assert {name for verb, kind, name, _ in sent if (verb, kind) == ("status", "TenantWeight")} == {"a", "search"}


class TestWhatSomebodyElseKeepsChanging:
    def changed(self, server):
        service = server.there["Service", "llama-fairpool"]
        return {**service, "spec": {**service["spec"], "type": "NodePort"}}

    async def test_is_put_back_at_once_a_few_times_and_then_said_while_it_waits(self, server, look):
        await look()
        await look()
        for _ in range(AT_ONCE):
            assert ("apply", "Service") in {each[:2] for each in await look(self.changed(server))}
        sent = await look(self.changed(server), tenant_weight(weight=7))
        assert {each[:2] for each in sent if each[0] == "apply"} == {("apply", "Secret")}
        accepted = server.there["FairPool", "llama"]["status"]["conditions"][0]
        assert (accepted["status"], accepted["reason"]) == ("Unknown", "ObjectPending")
        assert "Service llama-fairpool: somebody else changes it" in accepted["message"]

    @pytest.mark.parametrize("kind", ["FairPool", "TenantWeight"])
    async def test_of_a_status_is_put_back_later_and_later_too(self, server, look, kind):
        name = {"FairPool": "llama", "TenantWeight": "search"}[kind]
        await look()
        await look()

        def forged():
            found = server.there[kind, name]
            conditions = [{**each, "message": "forged"} for each in found["status"]["conditions"]]
            return {**found, "status": {**found["status"], "conditions": conditions}}

        for _ in range(AT_ONCE):
            assert ("status", kind) in {each[:2] for each in await look(forged())}
        assert await look(forged()) == []
        assert len(await look(fair_pool(suspend=True), tenant_weight(suspend=True))) > 0
        assert server.there[kind, name]["status"]["conditions"][0]["message"] != "forged"

    async def test_is_written_at_once_where_it_is_wanted_otherwise(self, server, look):
        await look()
        for _ in range(AT_ONCE + 1):
            await look(self.changed(server))
        edited = fair_pool(gateway={"networkPolicy": {}, "service": {"annotations": {"a": "b"}}})
        assert ("apply", "Service") in {each[:2] for each in await look(edited)}

    async def test_is_no_contest_where_the_cluster_itself_makes_it_other_than_asked(self, server, look):
        server.always["Service"] = lambda made: {**made, "spec": {**made["spec"], "type": "NodePort"}}
        for _ in range(AT_ONCE + 5):
            await look()
        accepted = server.there["FairPool", "llama"]["status"]["conditions"][0]
        assert (accepted["type"], accepted["status"]) == ("Accepted", "True")


class TestStatuses:
    MANY = 40

    @pytest.fixture
    def many(self, server):
        for number in range(self.MANY):
            server.keep(tenant_weight(f"t{number}"))

    async def test_are_broken_off_for_a_newer_edit_and_said_after_it(self, server, many, monkeypatch):
        monkeypatch.setattr(reconcile, "_HURRY_SECONDS", 0.0)
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
        monkeypatch.setattr(reconcile, "_HURRY_SECONDS", 0.0)
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
