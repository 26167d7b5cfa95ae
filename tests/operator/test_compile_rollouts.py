"""What is said while the gateway becomes one of a newer edition: it serves, and nobody takes the edit for made."""

from __future__ import annotations

from dataclasses import replace

import pytest
from support.compiling import SmallCluster, message, states
from support.resources import fair_pool, gateway_pod, metadata, rolled_out, rolling_out

SLOWER = {"gateway": {"drainTimeout": "7m"}}
WORKING = {"type": "Progressing", "status": "True", "reason": "ReplicaSetUpdated"}
LATE = {"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded"}
NO_ROOM = {"type": "ReplicaFailure", "status": "True", "message": "exceeded quota: pods"}
RESUME = "kubectl rollout resume -n inference deployment/llama-fairpool"


DONE = {
    "GatewayAvailable": ("True", "Available"),
    "Programmed": ("True", "Programmed"),
    "Ready": ("True", "Ready"),
}
UNDER_WAY = {
    "GatewayAvailable": ("True", "Available"),
    "Programmed": ("Unknown", "Pending"),
    "Ready": ("Unknown", "Pending"),
}
STUCK = {
    "GatewayAvailable": ("True", "RolloutStuck"),
    "Programmed": ("False", "RolloutStuck"),
    "Ready": ("False", "RolloutStuck"),
}
PAUSED = {
    "GatewayAvailable": ("True", "RolloutPaused"),
    "Programmed": ("False", "RolloutPaused"),
    "Ready": ("False", "RolloutPaused"),
}


@pytest.fixture
def cluster():
    """A pool whose gateway serves it as it is."""
    cluster = SmallCluster(fair_pool(), gateway_pod())
    cluster.settle()
    deployment = cluster.get("Deployment", "llama-fairpool")
    deployment["metadata"]["generation"] = 1
    cluster.put(deployment)
    cluster.serve()
    cluster.settle()
    assert said(cluster) == DONE
    return cluster


def said(cluster):
    """What is said of the gateway, and of all."""
    found = states(cluster.compiled().pool_status)
    return {type_: found[type_] for type_ in ("GatewayAvailable", "Programmed", "Ready")}


def words(cluster, type_="GatewayAvailable"):
    return message(cluster.compiled().pool_status, type_)


def edit(cluster, **spec):
    """Have people edit the pool, and the operator write what follows, as the API server counts it."""
    pool = cluster.get("FairPool", "llama")
    pool["metadata"]["generation"] += 1
    pool["spec"] |= spec
    cluster.put(pool)
    assert "Deployment" in [each.wanted["kind"] for each in cluster.settle().applies]
    change(cluster, lambda deployment: deployment["metadata"].update(generation=2))


def change(cluster, how):
    """Have the Deployment be otherwise."""
    deployment = cluster.get("Deployment", "llama-fairpool")
    how(deployment)
    cluster.put(deployment)


def controller_says(cluster, counts, *conditions):
    """Have the Deployments' controller say so of what is there now."""
    change(cluster, lambda deployment: deployment.update(status={**counts(deployment), "conditions": conditions}))


class TestAnEditOfHowTheGatewayRuns:
    def test_is_not_ready_in_the_very_look_that_writes_it(self, cluster):
        pool = cluster.get("FairPool", "llama")
        cluster.put({**pool, "spec": {**pool["spec"], **SLOWER}})
        assert said(cluster) == UNDER_WAY

    def test_is_on_its_way_until_every_pod_is_of_it_and_no_outage(self, cluster):
        edit(cluster, **SLOWER)
        assert said(cluster) == UNDER_WAY
        controller_says(cluster, lambda found: {**rolled_out(found), "updatedReplicas": 0}, WORKING)
        assert said(cluster) == UNDER_WAY
        controller_says(cluster, rolling_out, WORKING)
        assert said(cluster) == UNDER_WAY
        assert cluster.compiled().events == ()
        controller_says(cluster, rolled_out, WORKING)
        assert said(cluster) == DONE

    def test_may_be_the_operators_own_as_it_is_upgraded(self, cluster):
        cluster.settings = replace(cluster.settings, gateway_image="registry.example/fairpool:2")
        assert said(cluster) == UNDER_WAY
        cluster.settle()
        change(cluster, lambda deployment: deployment["metadata"].update(generation=2))
        assert said(cluster) == UNDER_WAY

    @pytest.mark.parametrize("why", [LATE, NO_ROOM])
    def test_that_gets_no_pod_is_told_once_and_is_not_ready(self, cluster, why):
        edit(cluster, **SLOWER)
        controller_says(cluster, rolling_out, why)
        assert said(cluster) == STUCK
        assert why.get("message", "kubectl describe pod -n inference") in words(cluster, "Ready")
        assert [event.reason for event in cluster.compiled().events] == ["RolloutStuck"]

    def test_is_not_stuck_for_what_was_said_of_the_edition_before(self, cluster):
        controller_says(cluster, rolling_out, LATE)
        assert said(cluster) == STUCK
        edit(cluster, **SLOWER)
        assert said(cluster) == UNDER_WAY

    def test_does_not_come_while_the_deployment_is_paused(self, cluster):
        change(cluster, lambda deployment: deployment["spec"].update(paused=True))
        assert said(cluster) == DONE
        assert RESUME in words(cluster)
        edit(cluster, **SLOWER)
        controller_says(cluster, lambda found: {**rolled_out(found), "updatedReplicas": 0})
        assert said(cluster) == PAUSED
        assert RESUME in words(cluster)
        assert RESUME in words(cluster, "Ready")
        assert cluster.compiled().events == ()

    def test_is_not_awaited_of_a_gateway_that_never_came_for_it_is_paused(self):
        cluster = SmallCluster(fair_pool())
        cluster.settle()
        change(cluster, lambda deployment: deployment["spec"].update(paused=True))
        controller_says(cluster, lambda _: {"replicas": 0, "updatedReplicas": 0})
        assert said(cluster)["GatewayAvailable"] == said(cluster)["Ready"] == ("False", "RolloutPaused")

    def test_whose_predecessor_is_lost_too_has_failed_and_is_not_stuck(self, cluster):
        edit(cluster, **SLOWER)
        controller_says(cluster, lambda found: {**rolling_out(found), "availableReplicas": 0}, LATE)
        assert said(cluster) == {
            "GatewayAvailable": ("False", "GatewayFailed"),
            "Programmed": ("Unknown", "Pending"),
            "Ready": ("False", "GatewayFailed"),
        }


class TestAPausedGateway:
    def test_whose_pod_is_lost_is_made_again_and_not_held_back(self, cluster):
        change(cluster, lambda deployment: deployment["spec"].update(paused=True))
        controller_says(cluster, lambda found: {**rolled_out(found), "availableReplicas": 0})
        assert said(cluster)["GatewayAvailable"] == ("False", "GatewayNotReady")


class TestAnotherReplica:
    @pytest.mark.parametrize(
        ("counts", "available"),
        [({"replicas": 2, "updatedReplicas": 2}, "False"), ({"replicas": 3, "updatedReplicas": 3}, "True")],
    )
    def test_is_no_new_edition_whether_it_is_ready_or_not(self, cluster, counts, available):
        state = {"type": "Available", "status": available}
        controller_says(cluster, lambda found: {**rolled_out(found), **counts}, state, LATE)
        assert said(cluster) == DONE

    def test_that_was_the_last_one_is_missed(self, cluster):
        none = {"observedGeneration": 1, "replicas": 0}
        controller_says(cluster, lambda _: none, {"type": "Available", "status": "True"})
        assert said(cluster)["Ready"] == ("False", "GatewayNotReady")


class TestAnImage:
    def test_that_something_in_the_cluster_changed_is_named(self, cluster):
        assert "image" not in words(cluster)
        change(cluster, lambda found: found["spec"]["template"]["spec"]["containers"][0].update(image="mirror/x:1"))
        assert "Its image is mirror/x:1, for something in the cluster changed" in words(cluster)
        assert said(cluster) == DONE
        controller_says(cluster, lambda found: {**rolled_out(found), "availableReplicas": 0}, LATE)
        assert said(cluster)["Ready"] == ("False", "GatewayFailed")
        assert "Its image is mirror/x:1" in words(cluster, "Ready")

    def test_that_is_of_another_container_is_not_looked_at(self, cluster):
        proxy = {"name": "proxy", "image": "proxy:1"}
        change(cluster, lambda found: found["spec"]["template"]["spec"]["containers"].insert(0, proxy))
        assert "image" not in words(cluster)


class TestTheAddress:
    def test_is_not_said_while_the_service_of_its_name_is_a_strangers(self):
        stranger = {"apiVersion": "v1", "kind": "Service", "metadata": metadata("llama-fairpool"), "spec": {}}
        cluster = SmallCluster(fair_pool(), stranger)
        assert cluster.compiled().pool_status.status.url is None
        cluster.remove("Service", "llama-fairpool")
        assert cluster.compiled().pool_status.status.url == "http://llama-fairpool.inference.svc/v1"
