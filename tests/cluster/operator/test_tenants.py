"""Who shares a pool: by name and age in its own namespace, by consent from any other."""

import pytest
from support.cluster.client import FAIR_POOL, NAMESPACE, SECRET, TENANT_WEIGHT
from support.cluster.definitions import fair_pool, tenant_weight
from support.cluster.namespaces import new_namespace
from support.cluster.operating import config_in
from support.cluster.resources import condition, says
from support.cluster.waiting import eventually

CONFIG = "llama-fairpool-config"


def weights_are(**weights):
    return lambda secret: config_in(secret).weights() == weights


@pytest.fixture
async def team(admin):
    """Another namespace, labelled as a team's."""
    async with new_namespace(admin, "team", {"team": "yes"}) as name:
        yield name


def of_pool(namespace):
    return {"poolRef": {"name": "llama", "namespace": namespace}}


class TestInThePoolsNamespace:
    async def test_the_older_of_two_for_one_tenant_wins_until_it_goes(self, operator, admin, namespace):
        await admin.create(fair_pool(namespace))
        await admin.create(tenant_weight(namespace, "a", tenantName="search", weight=1))
        await eventually(admin, TENANT_WEIGHT, "a", namespace, says("Accepted", "True"))
        await admin.create(tenant_weight(namespace, "b", tenantName="search", weight=2))
        told = await eventually(admin, TENANT_WEIGHT, "b", namespace, says("Accepted", "False", "Conflicted"))
        assert f"{namespace}/a" in condition(told, "Accepted")["message"]
        assert condition(told, "Stalled")["status"] == "True"
        await eventually(admin, SECRET, CONFIG, namespace, weights_are(search=1))
        await admin.delete(TENANT_WEIGHT, "a", namespace)
        found = await eventually(admin, TENANT_WEIGHT, "b", namespace, says("Accepted", "True"))
        assert not condition(found, "Stalled")
        await eventually(admin, SECRET, CONFIG, namespace, weights_are(search=2))

    async def test_a_pool_that_is_not_there_is_said_and_found_when_it_comes(self, operator, admin, namespace):
        await admin.create(tenant_weight(namespace))
        told = await eventually(admin, TENANT_WEIGHT, "search", namespace, says("Ready", "False", "PoolNotFound"))
        assert f"{namespace}/llama" in condition(told, "Ready")["message"]
        await admin.create(fair_pool(namespace))
        await eventually(admin, TENANT_WEIGHT, "search", namespace, says("Accepted", "True"))
        await admin.delete(FAIR_POOL, "llama", namespace)
        await eventually(admin, TENANT_WEIGHT, "search", namespace, says("Ready", "False", "PoolNotFound"))


class TestFromAnotherNamespace:
    async def test_it_needs_the_pools_consent_and_gets_a_name_and_a_weight_that_fit(
        self, operator, admin, namespace, team
    ):
        await admin.create(fair_pool(namespace))
        await admin.create(tenant_weight(team, weight=1000, **of_pool(namespace)))
        await eventually(admin, TENANT_WEIGHT, "search", team, says("Accepted", "False", "NotAllowed"))
        consent = {"namespaces": {"from": "All"}, "maxWeight": 200}
        await admin.patch(FAIR_POOL, "llama", namespace, {"spec": {"allowedTenants": consent}})
        found = await eventually(admin, TENANT_WEIGHT, "search", team, says("Accepted", "True"))
        assert (found["status"]["tenant"], found["status"]["weight"]) == (f"{team}/search", 200)
        await eventually(admin, SECRET, CONFIG, namespace, weights_are(**{f"{team}/search": 200}))
        await admin.patch(FAIR_POOL, "llama", namespace, {"spec": {"allowedTenants": {"namespaces": {"from": "Same"}}}})
        await eventually(admin, TENANT_WEIGHT, "search", team, says("Accepted", "False", "NotAllowed"))
        await eventually(admin, SECRET, CONFIG, namespace, weights_are())

    async def test_a_selector_follows_the_labels_of_namespaces(self, operator, admin, namespace, team):
        consent = {"namespaces": {"from": "Selector", "selector": {"matchLabels": {"team": "yes"}}}}
        await admin.create(fair_pool(namespace, allowedTenants=consent))
        await admin.create(tenant_weight(team, **of_pool(namespace)))
        await eventually(admin, TENANT_WEIGHT, "search", team, says("Accepted", "True"))
        await admin.patch(NAMESPACE, team, None, {"metadata": {"labels": {"team": "no"}}})
        await eventually(admin, TENANT_WEIGHT, "search", team, says("Accepted", "False", "NotAllowed"))
        await admin.patch(NAMESPACE, team, None, {"metadata": {"labels": {"team": "yes"}}})
        await eventually(admin, TENANT_WEIGHT, "search", team, says("Accepted", "True"))

    async def test_a_namespace_that_is_deleted_takes_its_tenants_along(self, operator, admin, namespace):
        await admin.create(fair_pool(namespace, allowedTenants={"namespaces": {"from": "All"}}))
        async with new_namespace(admin, "team") as other:
            await admin.create(tenant_weight(other, **of_pool(namespace)))
            await eventually(admin, SECRET, CONFIG, namespace, weights_are(**{f"{other}/search": 100}))
        await eventually(admin, SECRET, CONFIG, namespace, weights_are())
