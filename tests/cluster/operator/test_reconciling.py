"""From two resources to a gateway, kept as it is wanted, touching nothing of anybody else's, and then at rest."""

from support.cluster.client import (
    DEPLOYMENT,
    FAIR_POOL,
    NETWORK_POLICY,
    ROLE,
    ROLE_BINDING,
    SECRET,
    SERVICE,
    SERVICE_ACCOUNT,
    TENANT_WEIGHT,
)
from support.cluster.definitions import fair_pool, tenant_weight
from support.cluster.namespaces import new_namespace
from support.cluster.operating import config_in
from support.cluster.resources import condition, says
from support.cluster.scale import versions
from support.cluster.waiting import eventually, gone

OWNED = (SERVICE_ACCOUNT, ROLE, ROLE_BINDING, SERVICE, DEPLOYMENT)
ALWAYS = [*((kind, "llama-fairpool") for kind in OWNED), (SECRET, "llama-fairpool-config")]


class TestAPool:
    async def test_gets_everything_that_a_gateway_needs_and_owns_it(self, operator, admin, namespace):
        made = await admin.create(fair_pool(namespace))
        for kind, name in ALWAYS:
            found = await eventually(admin, kind, name, namespace, lambda _: True)
            (owner,) = found["metadata"]["ownerReferences"]
            assert (owner["kind"], owner["uid"], owner["controller"]) == ("FairPool", made["metadata"]["uid"], True)
            assert found["metadata"]["labels"]["fairpool.dev/pool"] == "llama"
        assert await admin.find(NETWORK_POLICY, "llama-fairpool", namespace) is None

    async def test_whose_tenants_are_edited_has_them_in_its_configuration(self, operator, admin, namespace):
        await admin.create(fair_pool(namespace))
        await admin.create(tenant_weight(namespace, weight=300))
        await eventually(
            admin,
            SECRET,
            "llama-fairpool-config",
            namespace,
            lambda found: config_in(found).weights() == {"search": 300},
        )
        await admin.patch(TENANT_WEIGHT, "search", namespace, {"spec": {"weight": 7}})
        await eventually(
            admin, SECRET, "llama-fairpool-config", namespace, lambda found: config_in(found).weights() == {"search": 7}
        )

    async def test_that_is_edited_changes_the_same_objects_and_a_weight_only_one(self, operator, admin, namespace):
        await admin.create(fair_pool(namespace))
        await admin.create(tenant_weight(namespace, weight=300))
        await eventually(admin, TENANT_WEIGHT, "search", namespace, says("Accepted", "True"))
        await operator.listed_again()
        before = await versions(admin, namespace)
        await admin.patch(TENANT_WEIGHT, "search", namespace, {"spec": {"weight": 30}})
        await eventually(admin, TENANT_WEIGHT, "search", namespace, lambda found: found["status"]["weight"] == 30)
        await eventually(admin, FAIR_POOL, "llama", namespace, lambda found: found["status"]["totalWeight"] == 30)
        after = await versions(admin, namespace)
        assert {each for each in after if after[each] != before.get(each)} == {
            ("Secret", "llama-fairpool-config"),
            ("TenantWeight", "search"),
            ("FairPool", "llama"),
        }

    async def test_may_ask_for_a_network_policy_and_then_for_none(self, operator, admin, namespace):
        await admin.create(fair_pool(namespace, gateway={"networkPolicy": {}}))
        await eventually(admin, NETWORK_POLICY, "llama-fairpool", namespace, lambda _: True)
        await admin.patch(FAIR_POOL, "llama", namespace, {"spec": {"gateway": {"networkPolicy": None}}})
        await gone(admin, NETWORK_POLICY, "llama-fairpool", namespace)

    async def test_has_a_pod_that_a_restricted_namespace_admits(self, operator, admin, namespace):
        await admin.create(fair_pool(namespace))
        deployment = await eventually(admin, DEPLOYMENT, "llama-fairpool", namespace, lambda _: True)
        async with new_namespace(admin, labels={"pod-security.kubernetes.io/enforce": "restricted"}) as restricted:
            await admin.create(
                {
                    "apiVersion": "v1",
                    "kind": "ServiceAccount",
                    "metadata": {"name": "llama-fairpool", "namespace": restricted},
                }
            )
            template = deployment["spec"]["template"]
            metadata = {"name": "gateway", "namespace": restricted, "labels": template["metadata"]["labels"]}
            await admin.create({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]})

    async def test_that_is_deleted_takes_everything_along(self, operator, admin, namespace, controllers):
        await admin.create(fair_pool(namespace))
        for kind, name in ALWAYS:
            await eventually(admin, kind, name, namespace, lambda _: True)
        await admin.delete(FAIR_POOL, "llama", namespace)
        for kind, name in ALWAYS:
            await gone(admin, kind, name, namespace)


class TestWhatOthersDo:
    async def test_an_edit_of_an_owned_field_is_put_back(self, operator, admin, namespace):
        await admin.create(fair_pool(namespace))
        await eventually(admin, SERVICE, "llama-fairpool", namespace, lambda _: True)
        await admin.patch(SERVICE, "llama-fairpool", namespace, {"spec": {"ports": [{"port": 81, "name": "http"}]}})
        await eventually(
            admin,
            SERVICE,
            "llama-fairpool",
            namespace,
            lambda found: [port["port"] for port in found["spec"]["ports"]] == [80],
        )

    async def test_a_field_that_another_manager_takes_over_is_taken_back(self, operator, admin, namespace):
        await admin.create(fair_pool(namespace))
        await eventually(admin, SERVICE_ACCOUNT, "llama-fairpool", namespace, lambda _: True)
        theirs = {"apiVersion": "v1", "kind": "ServiceAccount", "automountServiceAccountToken": True}
        await admin.apply({**theirs, "metadata": {"name": "llama-fairpool", "namespace": namespace}})
        await eventually(
            admin, SERVICE_ACCOUNT, "llama-fairpool", namespace, lambda found: not found["automountServiceAccountToken"]
        )

    async def test_an_owner_that_is_taken_away_is_put_back(self, operator, admin, namespace):
        made = await admin.create(fair_pool(namespace, gateway={"networkPolicy": {}}))
        every = [*ALWAYS, (NETWORK_POLICY, "llama-fairpool")]
        for kind, name in every:
            await eventually(admin, kind, name, namespace, lambda _: True)
        for kind, name in every:
            await admin.patch(kind, name, namespace, {"metadata": {"ownerReferences": None}})
        for kind, name in every:
            found = await eventually(
                admin, kind, name, namespace, lambda found: found["metadata"].get("ownerReferences")
            )
            assert [each["uid"] for each in found["metadata"]["ownerReferences"]] == [made["metadata"]["uid"]]

    async def test_a_field_of_somebody_elses_is_left_alone(self, operator, admin, namespace):
        await admin.create(fair_pool(namespace))
        await eventually(admin, DEPLOYMENT, "llama-fairpool", namespace, lambda _: True)
        change = {"metadata": {"annotations": {"example.com/team": "search"}}, "spec": {"minReadySeconds": 3}}
        await admin.patch(DEPLOYMENT, "llama-fairpool", namespace, change)
        await operator.listed_again()
        found = await admin.get(DEPLOYMENT, "llama-fairpool", namespace)
        assert found["metadata"]["annotations"]["example.com/team"] == "search"
        assert found["spec"]["minReadySeconds"] == 3

    async def test_an_owned_object_that_is_deleted_is_made_again(self, operator, admin, namespace):
        await admin.create(fair_pool(namespace))
        first = await eventually(admin, ROLE, "llama-fairpool", namespace, lambda _: True)
        await admin.delete(ROLE, "llama-fairpool", namespace)
        uid = first["metadata"]["uid"]
        await eventually(admin, ROLE, "llama-fairpool", namespace, lambda found: found["metadata"]["uid"] != uid)

    async def test_a_foreign_object_of_the_name_is_untouched_and_named_until_it_is_gone(
        self, operator, admin, namespace
    ):
        ports = [{"port": 9, "name": "discard"}]
        foreign = {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": "llama-fairpool", "namespace": namespace},
        }
        before = await admin.create({**foreign, "spec": {"ports": ports}})
        await admin.create(fair_pool(namespace))
        told = await eventually(admin, FAIR_POOL, "llama", namespace, says("Ready", "False", "NameTaken"))
        assert "Service llama-fairpool" in condition(told, "Ready")["message"]
        lists = (await operator.numbers())["lists_total"]
        await operator.reaches(lambda now: now["lists_total"] > lists + 2)
        assert await admin.find(DEPLOYMENT, "llama-fairpool", namespace) is None
        assert await admin.get(SERVICE, "llama-fairpool", namespace) == before
        await admin.delete(SERVICE, "llama-fairpool", namespace)
        for kind, name in ALWAYS:
            await eventually(admin, kind, name, namespace, lambda _: True)

    async def test_a_foreign_object_that_goes_is_missed_long_before_the_next_list(
        self, own_operators, admin, namespace
    ):
        foreign = {"apiVersion": "v1", "kind": "ServiceAccount"}
        await admin.create({**foreign, "metadata": {"name": "llama-fairpool", "namespace": namespace}})
        await admin.create(fair_pool(namespace))
        operator = own_operators("operator", "--list-seconds", "3600")
        await eventually(admin, FAIR_POOL, "llama", namespace, says("Ready", "False", "NameTaken"))
        await operator.reaches(lambda now: now["waiting_pools"] == 1 and now["lists_total"] > 1)
        await admin.delete(SERVICE_ACCOUNT, "llama-fairpool", namespace)
        await eventually(admin, FAIR_POOL, "llama", namespace, says("Accepted", "True"))


class TestAtRest:
    async def test_nothing_is_written_but_the_lease(self, operator, admin, namespace):
        documents = [fair_pool(namespace, gateway={"resources": {"requests": {"cpu": "1000m", "memory": "1024Mi"}}})]
        documents += [tenant_weight(namespace, name, weight=weight) for name, weight in (("a", 1), ("b", 1000))]
        for _ in range(2):
            for document in documents:
                await admin.apply(document)
        for name in ("a", "b"):
            await eventually(admin, TENANT_WEIGHT, name, namespace, says("Accepted", "True"))
        numbers = await operator.listed_again()
        before = await versions(admin, namespace)
        await operator.listed_again(4)
        for document in documents:
            await admin.apply(document)
        after = await operator.listed_again(4)
        assert await versions(admin, namespace) == before
        assert after["api_writes_total"] == numbers["api_writes_total"]
