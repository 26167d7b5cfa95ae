"""An operator of some namespaces: what becomes of one is in no other's way."""

from support.cluster.client import DEPLOYMENT, SECRET, Kind
from support.cluster.definitions import fair_pool, tenant_weight
from support.cluster.namespaces import new_namespace
from support.cluster.operating import bind_operator, config_in
from support.cluster.waiting import eventually

CONFIG = "llama-fairpool-config"
ROLE_BINDING = Kind("rbac.authorization.k8s.io/v1", "RoleBinding")


async def has_gateway(admin, name, namespace):
    """Wait until a pool has one."""
    await eventually(admin, DEPLOYMENT, f"{name}-fairpool", namespace, lambda _: True)


async def test_one_that_is_gone_stops_neither_the_lists_nor_a_new_start_for_the_other(own_operators, admin, namespace):
    async with new_namespace(admin, "second") as other:
        await bind_operator(admin, namespace, other)
        operator = own_operators("operator", "--namespace", other)
        await admin.create(fair_pool(other))
        await has_gateway(admin, "llama", other)
    failed = (await operator.numbers())["failed_lists_total"]
    await operator.reaches(lambda now: now["failed_lists_total"] > failed)
    await operator.listed_again(3)
    operator.kill()
    operator.start()
    await admin.create(fair_pool(namespace))
    await has_gateway(admin, "llama", namespace)
    assert f"namespace {other} cannot be listed" in operator.said


async def test_one_that_is_given_its_role_late_is_looked_at_then_and_its_tenants_elsewhere_too(
    own_operators, admin, namespace
):
    async with new_namespace(admin, "second") as other:
        await admin.create(fair_pool(other))
        await admin.create(fair_pool(namespace, allowedTenants={"namespaces": {"from": "All"}}))
        await admin.create(tenant_weight(other, poolRef={"name": "llama", "namespace": namespace}))
        operator = own_operators("operator", "--namespace", other)
        await has_gateway(admin, "llama", namespace)
        assert await admin.find(DEPLOYMENT, "llama-fairpool", other) is None
        assert config_in(await admin.get(SECRET, CONFIG, namespace)).tenants == ()
        await bind_operator(admin, namespace, other)
        await has_gateway(admin, "llama", other)
        await eventually(
            admin, SECRET, CONFIG, namespace, lambda found: f"{other}/search" in config_in(found).weights()
        )
        await admin.delete(ROLE_BINDING, (await admin.list(ROLE_BINDING, other))[0]["metadata"]["name"], other)
        failed = (await operator.numbers())["failed_lists_total"]
        await operator.reaches(lambda now: now["failed_lists_total"] > failed)
        await admin.create(tenant_weight(namespace, "home"))
        await eventually(
            admin,
            SECRET,
            CONFIG,
            namespace,
            lambda found: config_in(found).weights().keys() == {f"{other}/search", "home"},
        )
