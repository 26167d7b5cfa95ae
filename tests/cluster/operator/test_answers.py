"""What the server first says to a write, or has by then, keeps nothing from being so in the end, and harms nobody."""

from __future__ import annotations

import pytest
from support.cluster.client import FAIR_POOL, SECRET, SERVICE, TENANT_WEIGHT, Kind
from support.cluster.definitions import fair_pool, tenant_weight
from support.cluster.interrupting import Process
from support.cluster.lying_proxy import asking
from support.cluster.resources import condition, says
from support.cluster.waiting import eventually

from fairpool_operator import cluster as operators
from fairpool_operator.errors import Conflict

ACCOUNT = Kind("v1", "ServiceAccount")
EVENT = Kind("events.k8s.io/v1", "Event")
CONFIG = "llama-fairpool-config"


class TestWhatTheServerSaysOnce:
    @pytest.mark.parametrize("status", [404, 409])
    async def test_to_a_status_does_not_keep_it_from_being_said(
        self, own_operators, own_access, liar, admin, namespace, status
    ):
        operator = own_operators("operator", "--list-seconds", "3600", access=own_access.via(liar.url))
        await operator.reaches(lambda now: now["lists_total"])
        refused = liar.refuse(asking("tenantweights", "patch"), status, times=1)
        await admin.create(tenant_weight(namespace))
        await eventually(admin, TENANT_WEIGHT, "search", namespace, says("Ready", "False", "PoolNotFound"))
        assert refused.told == 1

    @pytest.mark.parametrize("status", [401, 408])
    async def test_of_itself_is_not_told_as_a_fault_of_the_pool(
        self, own_operators, own_access, liar, admin, namespace, status
    ):
        own_operators("operator", access=own_access.via(liar.url))
        refused = liar.refuse(asking("deployments", "patch"), status, times=2)
        await admin.create(fair_pool(namespace))
        await eventually(admin, FAIR_POOL, "llama", namespace, says("Accepted", "True"))
        assert refused.told == 2
        assert [each for each in await admin.list(EVENT, namespace) if each["reason"] == "ObjectRefused"] == []


class Overtaken:
    """A cluster in which somebody makes an object right after the operator has seen that it is not there."""

    def __init__(self, cluster, admin, stranger):
        self._cluster = cluster
        self._admin = admin
        self._stranger = stranger

    def __getattr__(self, verb):
        async def call(*arguments, **options):
            answer = await getattr(self._cluster, verb)(*arguments, **options)
            if verb == "get_metadata" and arguments[0].name == self._stranger["kind"] and answer is None:
                await self._admin.create(self._stranger)
            return answer

        return call


STRANGERS = {
    # Nothing that the operator applies contradicts what is in it.
    "Secret": {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": CONFIG}, "stringData": {"theirs": "stays"}},
    "Service": {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "llama-fairpool", "labels": {"app": "theirs"}},
        "spec": {"ports": [{"port": 9}], "selector": {"app": "theirs"}},
    },
}


class TestAnObjectThatSomebodyMakesMeanwhile:
    @pytest.mark.parametrize("kind", STRANGERS)
    async def test_stays_as_it_was_made_and_is_named(self, own_access, admin, namespace, tmp_path, kind):
        stranger = {**STRANGERS[kind], "metadata": {**STRANGERS[kind]["metadata"], "namespace": namespace}}
        client = await operators.connect(own_access.write(tmp_path / "kubeconfig", namespace))
        cluster = operators.Cluster(client)
        await admin.create(fair_pool(namespace))
        try:
            process = Process(Overtaken(cluster, admin, stranger), namespace)
            await process.begin()
            with pytest.raises(Conflict):
                await process.reconcile("llama")
            await process.reconcile("llama")
        finally:
            await cluster.aclose()
        found = await admin.get(SECRET if kind == "Secret" else SERVICE, stranger["metadata"]["name"], namespace)
        assert "ownerReferences" not in found["metadata"]
        assert found["metadata"].get("labels") == stranger["metadata"].get("labels")
        assert "annotations" not in found["metadata"]
        assert set(found.get("data", ())) == set(stranger.get("stringData", ()))
        assert found.get("spec", {}).get("selector") == stranger.get("spec", {}).get("selector")
        pool = await admin.get(FAIR_POOL, "llama", namespace)
        assert f"{kind} {stranger['metadata']['name']}" in condition(pool, "Ready")["message"]


class TestALabelThatListsAndWatchesNeed:
    @pytest.mark.parametrize("value", [None, "Helm"])
    async def test_is_put_back_whoever_took_it_and_then_nothing_is_written(
        self, own_operators, own_access, admin, namespace, value
    ):
        operator = own_operators("operator")
        await admin.create(fair_pool(namespace))
        await eventually(admin, FAIR_POOL, "llama", namespace, says("Accepted", "True"))
        before = await admin.get(ACCOUNT, "llama-fairpool", namespace)
        # Somebody else has set a field in it, too.
        await admin.patch(ACCOUNT, "llama-fairpool", namespace, {"metadata": {"annotations": {"theirs": "1"}}})
        taken = {"metadata": {"labels": {"app.kubernetes.io/managed-by": value}}}
        await admin.patch(ACCOUNT, "llama-fairpool", namespace, taken)
        labels = before["metadata"]["labels"]
        found = await eventually(
            admin, ACCOUNT, "llama-fairpool", namespace, lambda found: found["metadata"].get("labels") == labels
        )
        assert found["metadata"]["ownerReferences"] == before["metadata"]["ownerReferences"]
        await operator.listed_again(2)
        writes = (await operator.numbers())["api_writes_total"]
        await operator.listed_again(2)
        assert (await operator.numbers())["api_writes_total"] == writes
