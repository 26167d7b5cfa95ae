"""What the API server does not take from the operator is said, and is in nobody else's way."""

import pytest
from support.cluster.client import FAIR_POOL, SECRET, SERVICE, TENANT_WEIGHT, Kind
from support.cluster.definitions import fair_pool, tenant_weight
from support.cluster.namespaces import new_namespace
from support.cluster.operating import config_in
from support.cluster.resources import condition, flood, says
from support.cluster.scale import versions
from support.cluster.waiting import eventually

EVENT = Kind("events.k8s.io/v1", "Event")
QUOTA = Kind("v1", "ResourceQuota")
NONE = {"count/deployments.apps": "0"}
REFUSED = {
    "a key of a label that is none": {
        "podTemplate": {
            "affinity": {
                "nodeAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": {
                        "nodeSelectorTerms": [
                            {"matchExpressions": [{"key": "not a label!", "operator": "In", "values": ["a"]}]}
                        ]
                    }
                }
            }
        }
    },
}


def foreign(kind, namespace, *, group="v1", **rest):
    return {
        "apiVersion": group,
        "kind": kind,
        "metadata": {"name": "llama-fairpool" + "-config" * (kind == "Secret"), "namespace": namespace},
        **rest,
    }


class TestAnObject:
    @pytest.mark.parametrize("case", REFUSED)
    async def test_that_a_pool_makes_impossible_is_said_with_the_servers_words(self, operator, admin, namespace, case):
        await admin.create(tenant_weight(namespace))
        await admin.create(fair_pool(namespace, gateway=REFUSED[case]))
        told = await eventually(admin, FAIR_POOL, "llama", namespace, says("Ready", "False", "ObjectRefused"))
        assert "llama-fairpool" in condition(told, "Accepted")["message"]
        assert condition(told, "Stalled")["status"] == "True"
        await eventually(admin, TENANT_WEIGHT, "search", namespace, says("Accepted", "True"))

    async def test_beyond_a_quota_is_said_until_there_is_room_and_weights_go_on(self, operator, admin, namespace):
        quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "none", "namespace": namespace}}
        await admin.create({**quota, "spec": {"hard": NONE}})
        # What its controller would write: only that counts.
        await admin.patch(QUOTA, "none", namespace, {"status": {"hard": NONE, "used": NONE}}, "status")
        await admin.create(tenant_weight(namespace, weight=100))
        await admin.create(fair_pool(namespace))
        told = await eventually(admin, FAIR_POOL, "llama", namespace, says("Ready", "False", "ObjectRefused"))
        assert "exceeded quota" in condition(told, "Ready")["message"]
        await admin.patch(TENANT_WEIGHT, "search", namespace, {"spec": {"weight": 7}})
        await eventually(admin, TENANT_WEIGHT, "search", namespace, lambda found: found["status"].get("weight") == 7)
        name = "llama-fairpool-config"
        await eventually(admin, SECRET, name, namespace, lambda found: config_in(found).weights() == {"search": 7})
        await admin.delete(QUOTA, "none", namespace)
        # Nothing tells of that; an edit of the pool need not wait until it is tried again.
        await admin.patch(FAIR_POOL, "llama", namespace, {"spec": {"suspend": True}})
        await eventually(admin, FAIR_POOL, "llama", namespace, says("Accepted", "True"))


class TestAnEvent:
    async def test_that_cannot_be_told_keeps_nothing_from_being_said(self, operator, admin, namespace):
        await admin.create(fair_pool(namespace))
        # One of which the operator hears later than of its tenant is not found until then, and that is told.
        await eventually(admin, FAIR_POOL, "llama", namespace, says("Accepted", "True"))
        async with new_namespace(admin, "stranger") as stranger:
            # Its name is as long as may be, and an Event's is made of the part that fits.
            name = "a" * 199 + "-" + "b" * 40
            of_pool = {"name": "llama", "namespace": namespace}
            await admin.create(tenant_weight(stranger, name, poolRef=of_pool))
            await eventually(admin, TENANT_WEIGHT, name, stranger, says("Accepted", "False", "NotAllowed"))
            [event] = await admin.list(EVENT, stranger)
            assert event["reason"] == "NotAllowed"
            await admin.create(tenant_weight(namespace, weight=7))
            await eventually(admin, TENANT_WEIGHT, "search", namespace, says("Accepted", "True"))


class TestAStatus:
    async def test_that_somebody_filled_up_is_made_the_operators_again(self, operator, admin, namespace):
        await admin.create(fair_pool(namespace))
        before = await eventually(admin, FAIR_POOL, "llama", namespace, says("Accepted", "True"))
        forged = {"status": {"url": "http://evil.example/v1", "conditions": flood()}}
        await admin.patch(FAIR_POOL, "llama", namespace, forged, "status")
        await eventually(
            admin, FAIR_POOL, "llama", namespace, lambda found: found["status"]["url"] == before["status"]["url"]
        )
        await eventually(admin, FAIR_POOL, "llama", namespace, says("Accepted", "True"))


class TestForeignObjects:
    async def test_of_every_kind_are_all_named_and_nothing_is_written_while_they_are_there(
        self, operator, admin, namespace
    ):
        rbac, role = "rbac.authorization.k8s.io", {"kind": "Role", "name": "somebodys"}
        labels = {"matchLabels": {"app": "somebodys"}}
        template = {
            "metadata": {"labels": {"app": "somebodys"}},
            "spec": {"containers": [{"name": "c", "image": "i"}]},
        }
        strangers = [
            foreign("ServiceAccount", namespace),
            foreign("Role", namespace, group=f"{rbac}/v1"),
            foreign("RoleBinding", namespace, group=f"{rbac}/v1", roleRef={"apiGroup": rbac, **role}),
            foreign("Secret", namespace),
            foreign("Service", namespace, spec={"ports": [{"port": 9}]}),
            foreign("NetworkPolicy", namespace, group="networking.k8s.io/v1", spec={"podSelector": {}}),
            foreign("Deployment", namespace, group="apps/v1", spec={"selector": labels, "template": template}),
        ]
        for each in strangers:
            await admin.create(each)
        await admin.create(fair_pool(namespace, gateway={"networkPolicy": {}}))
        told = await eventually(admin, FAIR_POOL, "llama", namespace, says("Ready", "False", "NameTaken"))
        for each in strangers:
            assert f"{each['kind']} {each['metadata']['name']}" in condition(told, "Ready")["message"]
        before = await versions(admin, namespace)
        lists = (await operator.numbers())["lists_total"]
        await operator.reaches(lambda now: now["lists_total"] > lists + 3)
        assert await versions(admin, namespace) == before
        await admin.delete(SERVICE, "llama-fairpool", namespace)
        await eventually(
            admin,
            FAIR_POOL,
            "llama",
            namespace,
            lambda found: "Service llama-fairpool" not in condition(found, "Ready")["message"],
        )
