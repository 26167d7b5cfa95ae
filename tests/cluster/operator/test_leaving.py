"""A pool that something holds back while it is deleted goes on being configured, for its gateway may serve as long."""

import pytest
from support.cluster.client import DEPLOYMENT, FAIR_POOL, SECRET, SERVICE, TENANT_WEIGHT
from support.cluster.definitions import fair_pool, tenant_weight
from support.cluster.operating import config_in
from support.cluster.resources import condition, digest, says
from support.cluster.waiting import eventually, gone

CONFIG = "llama-fairpool-config"
HELD = {"finalizers": ["example.com/hold"]}
"""What somebody else's controller keeps a pool by."""


@pytest.fixture
async def held(operator, admin, namespace):
    """A pool that is being deleted and held back, with a tenant."""
    pool = fair_pool(namespace)
    await admin.create({**pool, "metadata": {**pool["metadata"], **HELD}})
    await admin.create(tenant_weight(namespace, apiKeys=[{"name": "k", "digest": digest("k")}]))
    await eventually(admin, SECRET, CONFIG, namespace, lambda found: config_in(found).tenants)
    await eventually(admin, DEPLOYMENT, "llama-fairpool", namespace, lambda _: True)
    await admin.delete(FAIR_POOL, "llama", namespace)
    yield
    if await admin.find(FAIR_POOL, "llama", namespace):
        await admin.patch(FAIR_POOL, "llama", namespace, {"metadata": {"finalizers": None}})


def of_generation(number):
    """Whether all conditions are about this edition."""
    return lambda found: {each["observedGeneration"] for each in found["status"]["conditions"]} == {number}


async def test_what_a_tenant_withdraws_is_withdrawn_and_said(held, operator, admin, namespace):
    await admin.patch(TENANT_WEIGHT, "search", namespace, {"spec": {"apiKeys": None, "suspend": True}})
    await eventually(
        admin,
        SECRET,
        CONFIG,
        namespace,
        lambda found: [(t.keys, t.suspend) for t in config_in(found).tenants] == [((), True)],
    )
    told = await eventually(admin, TENANT_WEIGHT, "search", namespace, of_generation(2))
    assert "It is suspended" in condition(told, "Accepted")["message"]
    await eventually(admin, FAIR_POOL, "llama", namespace, of_generation(2))


async def test_nothing_that_is_gone_is_made_again_and_at_rest_nothing_is_written(held, operator, admin, namespace):
    for kind, name in ((DEPLOYMENT, "llama-fairpool"), (SERVICE, "llama-fairpool"), (SECRET, CONFIG)):
        await admin.delete(kind, name, namespace)
    await eventually(admin, FAIR_POOL, "llama", namespace, says("GatewayAvailable", "Unknown", "Pending"))
    before = await operator.listed_again()
    assert (await operator.listed_again())["api_writes_total"] == before["api_writes_total"]
    for kind, name in ((DEPLOYMENT, "llama-fairpool"), (SERVICE, "llama-fairpool"), (SECRET, CONFIG)):
        assert await admin.find(kind, name, namespace) is None


async def test_what_was_to_be_left_behind_is_left_whatever_a_tenant_changes(controllers, operator, admin, namespace):
    await admin.create(fair_pool(namespace))
    await admin.create(tenant_weight(namespace))
    await eventually(admin, SECRET, CONFIG, namespace, lambda found: config_in(found).tenants)
    await admin.patch(FAIR_POOL, "llama", namespace, {"metadata": HELD})
    await admin.delete(FAIR_POOL, "llama", namespace, propagationPolicy="Orphan")
    await eventually(admin, SECRET, CONFIG, namespace, lambda found: "ownerReferences" not in found["metadata"])
    await admin.patch(TENANT_WEIGHT, "search", namespace, {"spec": {"suspend": True}})
    await eventually(admin, TENANT_WEIGHT, "search", namespace, of_generation(2))
    await operator.listed_again()
    await admin.patch(FAIR_POOL, "llama", namespace, {"metadata": {"finalizers": None}})
    await gone(admin, FAIR_POOL, "llama", namespace)
    await operator.listed_again()
    assert "ownerReferences" not in (await admin.get(SECRET, CONFIG, namespace))["metadata"]
