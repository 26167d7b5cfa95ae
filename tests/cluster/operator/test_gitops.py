"""What GitOps tools see of real resources while the operator works: in progress at once, then settled, and why not."""

from support.cluster.client import FAIR_POOL, POD, SERVICE, TENANT_WEIGHT
from support.cluster.definitions import fair_pool, tenant_weight
from support.cluster.resources import by_secret, condition, key_secret, says
from support.cluster.serving import deployed, gateway_pod, report
from support.cluster.waiting import eventually
from support.gitops import ARGO_FOR, argo_health, kstatus
from support.resources import SMALLEST


def reads(state):
    """Whether both ways of reading a resource say so."""
    return lambda found: kstatus(found) == state and argo_health(found)[0] == ARGO_FOR[state]


async def serve(admin, pods, namespace):
    """Do what a gateway's Deployment, its pod and the gateway itself do once the configuration is there."""
    uid = await gateway_pod(pods)
    await deployed(admin, namespace, Available="True")
    await report(admin, namespace, uid)


class TestAPool:
    async def test_is_in_progress_from_its_first_moment_until_its_gateway_serves(
        self, operator, admin, namespace, pods
    ):
        made = await admin.create(fair_pool(namespace))
        assert reads("InProgress")(made)
        await eventually(admin, FAIR_POOL, "llama", namespace, lambda found: "observedGeneration" in found["status"])
        looked_at = await admin.get(FAIR_POOL, "llama", namespace)
        assert reads("InProgress")(looked_at)
        assert condition(looked_at, "Ready")["lastTransitionTime"] >= made["metadata"]["creationTimestamp"]
        await serve(admin, pods, namespace)
        await eventually(admin, FAIR_POOL, "llama", namespace, reads("Current"))

    async def test_is_in_progress_with_the_answer_to_an_edit(self, operator, admin, namespace, pods):
        await admin.create(fair_pool(namespace))
        await serve(admin, pods, namespace)
        await eventually(admin, FAIR_POOL, "llama", namespace, reads("Current"))
        edited = await admin.patch(FAIR_POOL, "llama", namespace, {"spec": {"defaultWeight": 7}})
        assert reads("InProgress")(edited)
        uid = (await admin.get(POD, "gateway", namespace))["metadata"]["uid"]
        generation = edited["metadata"]["generation"]
        await eventually(
            admin, FAIR_POOL, "llama", namespace, lambda found: found["status"]["observedGeneration"] == generation
        )
        await report(admin, namespace, uid)
        await eventually(admin, FAIR_POOL, "llama", namespace, reads("Current"))

    async def test_is_in_progress_until_its_gateway_is_of_an_edit_that_changes_no_configuration(
        self, operator, admin, namespace, pods
    ):
        await admin.create(fair_pool(namespace))
        await serve(admin, pods, namespace)
        await eventually(admin, FAIR_POOL, "llama", namespace, reads("Current"))
        edited = await admin.patch(FAIR_POOL, "llama", namespace, {"spec": {"gateway": {"drainTimeout": "7m"}}})
        generation = edited["metadata"]["generation"]
        first = await eventually(
            admin, FAIR_POOL, "llama", namespace, lambda found: found["status"]["observedGeneration"] == generation
        )
        assert reads("InProgress")(first)
        assert says("GatewayAvailable", "True", "Available")(first)
        await deployed(admin, namespace, Available="True")
        await eventually(admin, FAIR_POOL, "llama", namespace, reads("Current"))

    async def test_has_failed_while_a_name_is_taken(self, operator, admin, namespace):
        metadata = {"name": "llama-fairpool", "namespace": namespace}
        ports = {"ports": [{"port": 9, "name": "discard"}]}
        await admin.create({"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": ports})
        await admin.create(fair_pool(namespace))
        failed = await eventually(admin, FAIR_POOL, "llama", namespace, reads("Failed"))
        assert "url" not in failed["status"]
        await admin.delete(SERVICE, "llama-fairpool", namespace)
        await eventually(admin, FAIR_POOL, "llama", namespace, reads("InProgress"))

    async def test_has_failed_while_a_secret_is_missing(self, operator, admin, namespace):
        endpoints = {**SMALLEST, "credentialRef": {"name": "engine-key"}}
        await admin.create(fair_pool(namespace, endpoints=endpoints))
        await eventually(admin, FAIR_POOL, "llama", namespace, reads("Failed"))
        await admin.create(key_secret(namespace, "engine-key", "k" * 24, label="engine"))
        await eventually(admin, FAIR_POOL, "llama", namespace, reads("InProgress"))

    async def test_is_terminating_while_somebody_holds_it(self, operator, admin, namespace):
        await admin.create(fair_pool(namespace))
        await admin.patch(FAIR_POOL, "llama", namespace, {"metadata": {"finalizers": ["example.com/held"]}})
        await admin.delete(FAIR_POOL, "llama", namespace)
        await operator.listed_again()
        assert reads("Terminating")(await admin.get(FAIR_POOL, "llama", namespace))


class TestATenantWeight:
    async def test_is_in_progress_until_the_gateway_uses_it(self, operator, admin, namespace, pods):
        await admin.create(fair_pool(namespace))
        made = await admin.create(tenant_weight(namespace))
        assert reads("InProgress")(made)
        await eventually(admin, TENANT_WEIGHT, "search", namespace, lambda found: found["status"].get("weight"))
        assert reads("InProgress")(await admin.get(TENANT_WEIGHT, "search", namespace))
        await serve(admin, pods, namespace)
        await eventually(admin, TENANT_WEIGHT, "search", namespace, reads("Current"))

    async def test_has_failed_while_its_pool_or_its_secret_is_missing(self, operator, admin, namespace):
        await admin.create(tenant_weight(namespace, apiKeys=[by_secret("search-key")]))
        await eventually(admin, TENANT_WEIGHT, "search", namespace, reads("Failed"))
        await admin.create(fair_pool(namespace))
        await eventually(
            admin,
            TENANT_WEIGHT,
            "search",
            namespace,
            lambda found: reads("Failed")(found) and "SecretNotFound" in argo_health(found)[1],
        )
        await admin.create(key_secret(namespace, "search-key", "k" * 24))
        await eventually(admin, TENANT_WEIGHT, "search", namespace, reads("InProgress"))
