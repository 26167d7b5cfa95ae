"""What is said about a pool, from its first moment to the day it is gone."""

from __future__ import annotations

from support.compiling import SmallCluster, states
from support.resources import fair_pool, gateway_pod, tenant_weight

SERVING = {
    "Accepted": ("True", "Accepted"),
    "ResolvedRefs": ("True", "Resolved"),
    "EndpointsAvailable": ("True", "EndpointsReady"),
    "GatewayAvailable": ("True", "Available"),
    "Programmed": ("True", "Programmed"),
    "Ready": ("True", "Ready"),
}


def serving(*resources, **spec):
    """A pool with a gateway that serves, and whatever else is given."""
    cluster = SmallCluster(fair_pool(**spec), gateway_pod(), *resources)
    cluster.settle()
    cluster.serve()
    cluster.settle()
    return cluster


class TestFromTheFirstMoment:
    def test_the_smallest_pool_gets_a_gateway_and_waits_for_it(self):
        cluster = SmallCluster(fair_pool())
        made = cluster.settle()
        assert [each.wanted["kind"] for each in made.applies] == [
            "ServiceAccount", "Role", "RoleBinding", "Secret", "Service", "Deployment",
        ]  # fmt: skip
        assert made.pool_status is not None
        assert states(made.pool_status) == SERVING | {
            "EndpointsAvailable": ("Unknown", "GatewayNotReporting"),
            "GatewayAvailable": ("Unknown", "Pending"),
            "Programmed": ("Unknown", "GatewayNotReporting"),
            "Ready": ("Unknown", "Pending"),
        }

    def test_it_is_ready_once_a_gateway_serves_and_uses_its_configuration(self):
        cluster = serving(tenant_weight(weight=300))
        said = cluster.compiled().pool_status
        assert states(said) == SERVING
        assert said.status.url == "http://llama-fairpool.inference.svc/v1"
        assert (said.status.endpoints.summary, said.status.accelerators) == ("2/2", 2)
        assert (said.status.tenants, said.status.total_weight) == (1, 300)

    def test_nothing_is_written_any_more(self):
        cluster = serving(tenant_weight())
        assert not cluster.changes()

    def test_a_pool_that_is_being_deleted_is_left_to_the_garbage_collector(self):
        cluster = serving(tenant_weight())
        pool = cluster.get("FairPool", "llama")
        pool["metadata"]["deletionTimestamp"] = "2026-05-01T12:00:00Z"
        cluster.put(pool)
        assert not cluster.changes()

    def test_a_pool_that_is_gone_is_missed_by_its_tenants_alone(self):
        cluster = serving(tenant_weight())
        cluster.remove("FairPool", "llama")
        written = cluster.settle()
        assert written.pool_status is None
        [said] = written.tenant_statuses
        assert states(said)["ResolvedRefs"] == ("False", "PoolNotFound")
        assert states(said)["Stalled"] == ("True", "PoolNotFound")
