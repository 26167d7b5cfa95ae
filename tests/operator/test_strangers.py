"""Objects that no list and no watch tells of: strangers' under names that a pool needs, and its own without its labels.

The server here tells as the true one does to who watches by labels: what loses them is DELETED, at the version in which
it lost them.
"""

from __future__ import annotations

import copy
import itertools

import pytest
from support.compiling import LLAMA, NOW, SETTINGS
from support.resources import fair_pool, tenant_weight
from support.server_side_apply import applied

from fairpool_operator.errors import ClusterError
from fairpool_operator.reconcile import Reconciler
from fairpool_operator.store import Store
from fairpool_operator.view import MANAGED

LABEL, OPERATOR = MANAGED
ENOUGH = 20
"""Looks after which what is not at rest never will be."""


def annotated_by_others(found):
    """An object in which others have set a field, too."""
    theirs = {"manager": "kubectl", "operation": "Update", "fieldsV1": {"f:metadata": {"f:annotations": {"f:a": {}}}}}
    found["metadata"].setdefault("annotations", {})["a"] = "1"
    found["metadata"]["managedFields"] = [*found["metadata"].get("managedFields", ()), theirs]
    return found


class Server:
    """Keeps what it is told, and what whoever watches by labels would be told."""

    def __init__(self):
        self.there = {}
        self.told = []
        self.writes = 0
        self.overtaken_by = None
        self._versions = itertools.count(1000)

    def keep(self, found):
        key = found["kind"], found["metadata"]["name"]
        before = self.there.get(key)
        kept = copy.deepcopy(found)
        kept["metadata"] |= {"resourceVersion": str(next(self._versions)), "uid": f"uid-of-{'-'.join(key)}"}
        self.there[key] = kept
        if is_followed(kept):
            self.told.append(("put", kept))
        elif before is not None and is_followed(before):
            version = {"resourceVersion": kept["metadata"]["resourceVersion"]}
            self.told.append(("remove", {**before, "metadata": {**before["metadata"], **version}}))
        return copy.deepcopy(kept)

    async def get(self, kind, namespace, name):
        return copy.deepcopy(self.there.get((kind.name, name)))

    async def get_metadata(self, kind, namespace, name):
        found = await self.get(kind, namespace, name)
        if found is None and self.overtaken_by is not None and self.overtaken_by["kind"] == kind.name:
            stranger, self.overtaken_by = self.overtaken_by, None
            self.keep(stranger)
        return found and {"kind": kind.name, "metadata": found["metadata"]}

    async def apply(self, kind, wanted, *, status=False, force=True):
        self.writes += 1
        there = self.there.get((kind.name, wanted["metadata"]["name"]))
        if status:
            return self.keep({**there, "status": wanted["status"]})
        if set(wanted["metadata"]) == {"name", "namespace", "uid"}:
            return self.keep(without_ours(there))
        return self.keep(applied(wanted, there))

    async def create(self, kind, wanted):
        """Tell nobody."""


def is_followed(found):
    labels = found["metadata"].get("labels", {})
    return "fairpool.dev/keys" in labels if found["kind"] == "Secret" else labels.get(LABEL) == OPERATOR


def without_ours(found):
    """What applying nothing leaves of a stranger's ServiceAccount."""
    record = [each for each in found["metadata"]["managedFields"] if each["manager"] != "fairpool-operator"]
    kept = {name: found["metadata"][name] for name in ("name", "namespace")}
    return {**found, "metadata": {**kept, "annotations": {"a": "1"}, "managedFields": record}}


@pytest.fixture
def server():
    return Server()


@pytest.fixture
def operate(server):
    """Looks, and hears of what happened, until nothing is due; returns how many writes that took."""
    store, due = Store(), set()
    reconciler = Reconciler(server, store, SETTINGS, due.update, due.__contains__, identity="tests", now=lambda: NOW)

    async def operate(*edits):
        for each in edits:
            due.update(store.put(each["kind"], server.keep(each)))
        before = server.writes
        for _ in range(ENOUGH):
            while server.told:
                how, found = server.told.pop(0)
                due.update(getattr(store, how)(found["kind"], found))
            if not due:
                return server.writes - before
            due.clear()
            try:
                await reconciler.reconcile(LLAMA)
            except ClusterError:
                due.add(LLAMA)
        raise AssertionError("never at rest")

    async def listed(kind):
        """The same after a list, which has what is labelled."""
        found = [each for (name, _), each in server.there.items() if name == kind and is_followed(each)]
        due.update(store.replace(kind, found, store.begin()))
        return await operate()

    operate.listed = listed
    return operate


STUCK = {"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded", "message": "it is stuck"}
ACCOUNT = ("ServiceAccount", "llama-fairpool")


class TestAnObjectThatSomebodyMakesMeanwhile:
    async def test_is_given_back_once_and_named(self, server, operate):
        metadata = {"name": "llama-fairpool", "namespace": "inference"}
        server.overtaken_by = annotated_by_others({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata})
        assert await operate(fair_pool()) <= 4
        found = server.there[ACCOUNT]["metadata"]
        assert "labels" not in found
        assert "ownerReferences" not in found
        accepted = server.there["FairPool", "llama"]["status"]["conditions"][0]
        assert (accepted["status"], accepted["reason"]) == ("False", "NameTaken")


class TestOneOfOurs:
    @pytest.mark.parametrize("kind", ["ServiceAccount", "Role", "Deployment"])
    @pytest.mark.parametrize("value", [None, "Helm"])
    @pytest.mark.parametrize("by_others", [False, True])
    async def test_whose_label_is_taken_away_gets_it_back_and_keeps_all_else(
        self, server, operate, kind, value, by_others
    ):
        await operate(fair_pool())
        good = server.there[kind, "llama-fairpool"]
        edited = annotated_by_others(copy.deepcopy(good)) if by_others else copy.deepcopy(good)
        if kind == "Deployment":
            edited["status"] = {"conditions": [STUCK]}
        server.keep(edited)
        await operate()
        edited["metadata"]["labels"] = {**good["metadata"]["labels"]}
        edited["metadata"]["labels"].pop(LABEL)
        if value is not None:
            edited["metadata"]["labels"][LABEL] = value
        server.keep(edited)
        assert await operate() == 1
        found = server.there[kind, "llama-fairpool"]
        assert found["metadata"]["labels"] == good["metadata"]["labels"]
        assert found["metadata"]["ownerReferences"] == good["metadata"]["ownerReferences"]
        assert {name: found.get(name) for name in ("rules", "spec")} == {
            name: good.get(name) for name in ("rules", "spec")
        }

    async def test_made_meanwhile_by_another_operator_is_kept_though_a_controller_has_said_how_it_stands(
        self, server, operate
    ):
        await operate(fair_pool())
        good = server.there.pop(("Deployment", "llama-fairpool"))
        state = {"manager": "kube-controller-manager", "operation": "Update", "subresource": "status"}
        record = [*good["metadata"]["managedFields"], {**state, "fieldsV1": {"f:status": {}}}]
        server.overtaken_by = {**good, "metadata": {**good["metadata"], "managedFields": record}}
        server.told.append(("remove", good))
        await operate()
        found = server.there["Deployment", "llama-fairpool"]
        assert found["metadata"]["ownerReferences"] == good["metadata"]["ownerReferences"]
        assert found["spec"] == good["spec"]


class TestAStrangersSecret:
    async def test_that_a_tenant_names_is_not_there_for_it_after_any_list(self, server, operate):
        name = "llama-fairpool-config"
        server.keep({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": "inference"}})
        keys = [{"name": "k", "secretKeyRef": {"name": name, "key": "api-key"}}]
        await operate(fair_pool(), tenant_weight(apiKeys=keys))
        assert [await operate.listed("Secret") for _ in range(3)] == [0, 0, 0]
        resolved = server.there["TenantWeight", "search"]["status"]["conditions"][1]
        assert (resolved["type"], resolved["reason"]) == ("ResolvedRefs", "SecretNotFound")
        assert "is not there, or not labelled" in resolved["message"]


class TestAPoolThatIsHeldBackWhileItIsDeleted:
    async def test_has_withdrawn_keys_taken_from_its_configuration_though_that_lost_its_label(self, server, operate):
        pool, weight = fair_pool(), tenant_weight()
        await operate(pool, weight)
        before = copy.deepcopy(server.there["Secret", "llama-fairpool-config"])
        leaving = {**pool["metadata"], "deletionTimestamp": "2026-02-02T00:00:00Z", "finalizers": ["example.com/hold"]}
        await operate({**pool, "metadata": leaving})
        unlabelled = copy.deepcopy(server.there["Secret", "llama-fairpool-config"])
        del unlabelled["metadata"]["labels"]["fairpool.dev/keys"]
        server.keep(unlabelled)
        await operate({**weight, "spec": {**weight["spec"], "apiKeys": []}})
        found = server.there["Secret", "llama-fairpool-config"]
        assert found["data"] != before["data"]
        assert found["metadata"]["labels"] == before["metadata"]["labels"]


class TestAPoolThatIsGone:
    async def test_asks_for_no_stranger_any_more(self, server, operate):
        pool = fair_pool()
        metadata = {"name": "llama-fairpool", "namespace": "inference"}
        server.keep(annotated_by_others({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata}))
        await operate(pool)
        store = Store()
        store.put("ServiceAccount", server.there[ACCOUNT])
        reconciler = Reconciler(
            server, store, SETTINGS, lambda _: None, lambda _: False, identity="tests", now=lambda: NOW
        )
        assert await reconciler.reconcile(LLAMA) is None
