"""Where the cluster's own admission fails for one object, whatever else there is to write is written and said."""

import pytest
from support.cluster.client import (
    DEPLOYMENT,
    FAIR_POOL,
    NETWORK_POLICY,
    ROLE,
    ROLE_BINDING,
    SECRET,
    TENANT_WEIGHT,
)
from support.cluster.definitions import fair_pool, tenant_weight
from support.cluster.namespaces import new_namespace
from support.cluster.operating import config_in
from support.cluster.resources import by_secret, condition, digest, key_secret, says
from support.cluster.waiting import eventually
from support.cluster.webhooks import forbidden, webhook


def is_observed(found):
    return found["status"].get("observedGeneration") == found["metadata"]["generation"]


class TestAWebhookThatIsAway:
    @pytest.mark.parametrize("answers", [True, False], ids=["refuses connections", "does not answer"])
    async def test_is_named_where_an_object_waits_for_it(self, operator, admin, namespace, answers):
        async with webhook(admin, namespace, "apps/deployments", answers=answers):
            await admin.create(tenant_weight(namespace))
            await admin.create(fair_pool(namespace))
            told = await eventually(admin, FAIR_POOL, "llama", namespace, says("Accepted", "Unknown", "ObjectPending"))
            assert "Deployment llama-fairpool: " in condition(told, "Ready")["message"]
            assert [each for each in told["status"]["conditions"] if each["type"] == "Stalled"] == []
            await eventually(admin, TENANT_WEIGHT, "search", namespace, says("Accepted", "True"))
        await eventually(admin, DEPLOYMENT, "llama-fairpool", namespace, lambda found: True, within=60)

    @pytest.mark.parametrize("concerned", ["rolebindings", "roles"])
    async def test_keeps_no_withdrawn_key_in_force(self, operator, admin, namespace, concerned):
        await admin.create(key_secret(namespace, "k", "sk-withdrawn"))
        await admin.create(fair_pool(namespace))
        await admin.create(tenant_weight(namespace, apiKeys=[by_secret("k")]))
        name, withdrawn = "llama-fairpool-config", digest("sk-withdrawn")
        await eventually(admin, SECRET, name, namespace, lambda found: withdrawn in str(config_in(found)))
        await eventually(admin, DEPLOYMENT, "llama-fairpool", namespace, lambda found: True)
        async with webhook(admin, namespace, f"rbac.authorization.k8s.io/{concerned}", operations=["CREATE"]):
            # A RoleBinding is not taken without its Role.
            await admin.delete(ROLE, "llama-fairpool", namespace)
            await admin.delete(ROLE_BINDING, "llama-fairpool", namespace)
            await eventually(admin, FAIR_POOL, "llama", namespace, says("Accepted", "Unknown", "ObjectPending"))
            await admin.delete(TENANT_WEIGHT, "search", namespace)
            await eventually(admin, SECRET, name, namespace, lambda found: withdrawn not in str(config_in(found)))

    @pytest.mark.parametrize("answers", [True, False], ids=["refuses connections", "does not answer"])
    async def test_silences_nobody_but_whom_it_concerns(self, operator, admin, namespace, answers):
        async with (
            new_namespace(admin, "guests") as guests,
            webhook(admin, guests, "fairpool.dev/tenantweights/status", answers=answers),
            webhook(admin, namespace, "events.k8s.io/events", answers=answers),
        ):
            of_pool = {"name": "llama", "namespace": namespace}
            await admin.create(tenant_weight(guests, "guest", poolRef=of_pool))
            await admin.create(tenant_weight(namespace, "without", apiKeys=[by_secret("missing")]))
            for number in range(12):
                await admin.create(tenant_weight(namespace, f"tenant-{number}"))
            everybody = {"namespaces": {"from": "All"}}
            await admin.create(fair_pool(namespace, allowedTenants=everybody))
            for number in range(12):
                await eventually(admin, TENANT_WEIGHT, f"tenant-{number}", namespace, says("Accepted", "True"))
            await eventually(admin, TENANT_WEIGHT, "without", namespace, says("ResolvedRefs", "False"))
            told = await eventually(admin, FAIR_POOL, "llama", namespace, says("Accepted", "True"))
            assert told["status"]["tenants"] == 14


class TestAPolicy:
    async def test_that_lets_nothing_be_removed_is_said_and_in_no_ones_way(self, operator, admin, namespace):
        await admin.create(fair_pool(namespace, gateway={"networkPolicy": {}}))
        await eventually(admin, NETWORK_POLICY, "llama-fairpool", namespace, lambda found: True)
        async with forbidden(admin, namespace, "networking.k8s.io/networkpolicies", "DELETE", "'none is removed'"):
            await admin.patch(FAIR_POOL, "llama", namespace, {"spec": {"gateway": {"networkPolicy": None}}})
            told = await eventually(admin, FAIR_POOL, "llama", namespace, says("Accepted", "False", "ObjectRefused"))
            assert is_observed(told)
            said = condition(told, "Ready")["message"]
            assert "NetworkPolicy llama-fairpool: it is to be removed: " in said
            assert "none is removed" in said
            await admin.create(tenant_weight(namespace, "late"))
            await eventually(admin, TENANT_WEIGHT, "late", namespace, says("Accepted", "True"))
