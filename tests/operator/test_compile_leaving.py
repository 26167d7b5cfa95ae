"""A pool that is on its way out, or cannot be read: what serves goes on, and what is withdrawn is not kept silent."""

from __future__ import annotations

import pytest
from support.compiling import SmallCluster, message, states
from support.resources import SMALLEST, fair_pool, gateway_pod, tenant_weight

from fairpool_operator.compile import Compiled

LEAVING = {"deletionTimestamp": "2026-05-01T12:00:00Z", "generation": 2}
"""What the server makes of a pool that is deleted and has a finalizer: it counts as an edit."""


@pytest.fixture
def serving():
    """A pool with a tenant, whose gateway uses the newest configuration."""
    cluster = SmallCluster(fair_pool(), gateway_pod(), tenant_weight())
    cluster.settle()
    cluster.serve()
    cluster.settle()
    return cluster


@pytest.fixture
def leaving(serving):
    """The same, being deleted, and not gone yet."""
    pool = serving.get("FairPool", "llama")
    pool["metadata"].update(LEAVING)
    serving.put(pool)
    serving.settle()
    return serving


def edited(cluster, **spec):
    """A new edition of the tenant; returns what is written for it."""
    weight = cluster.get("TenantWeight", "search")
    weight["metadata"]["generation"] += 1
    weight["spec"].update(spec)
    cluster.put(weight)
    return cluster.settle()


def kinds(applies):
    return [each.wanted["kind"] for each in applies]


class TestAPoolThatIsBeingDeleted:
    def test_has_what_its_tenants_withdraw_withdrawn_from_its_gateway(self, leaving):
        written = edited(leaving, apiKeys=[], suspend=True)
        assert kinds(written.applies) == ["Secret"]
        [tenant] = leaving.compiled().config.tenants
        assert (tenant.keys, tenant.suspend) == ((), True)

    def test_has_its_tenants_told_what_became_of_their_edit(self, leaving):
        [said] = edited(leaving, suspend=True).tenant_statuses
        assert {each.observed_generation for each in said.status.conditions} == {2}
        assert states(said)["Programmed"] == ("Unknown", "Pending")
        leaving.serve()
        [said] = leaving.settle().tenant_statuses
        assert states(said)["Programmed"] == ("True", "Programmed")

    def test_and_a_tenant_that_comes_late_are_told_of(self, leaving):
        leaving.put(tenant_weight("late"))
        written = leaving.settle()
        assert [each.metadata.name for each in written.tenant_statuses] == ["late"]
        assert states(written.tenant_statuses[0])["Accepted"] == ("True", "Accepted")

    def test_is_said_to_be_as_it_is_now(self, leaving):
        said = leaving.compiled().pool_status
        assert {each.observed_generation for each in said.status.conditions} == {2}
        assert states(said)["Ready"] == ("True", "Ready")

    def test_gets_back_nothing_that_is_gone_or_changed(self, leaving):
        for kind in ("ServiceAccount", "Role", "Deployment"):
            leaving.remove(kind, "llama-fairpool")
        service = leaving.get("Service", "llama-fairpool")
        service["spec"]["ports"] = []
        leaving.put(service)
        written = leaving.changes()
        assert (written.applies, written.removals) == ((), ())
        said = leaving.compiled().pool_status
        assert states(said)["GatewayAvailable"] == ("Unknown", "Pending")
        assert message(said, "GatewayAvailable") == "The pool is being deleted, and has no gateway any more."

    def test_gets_no_configuration_once_that_is_gone(self, leaving):
        leaving.remove("Secret", "llama-fairpool-config")
        assert edited(leaving, apiKeys=[]).applies == ()

    def test_takes_back_nothing_that_it_has_let_go(self, leaving):
        secret = leaving.get("Secret", "llama-fairpool-config")
        del secret["metadata"]["ownerReferences"]
        leaving.put(secret)
        written = edited(leaving, apiKeys=[])
        assert written.applies == ()
        assert states(leaving.compiled().pool_status)["Accepted"] == ("True", "Accepted")

    def test_comes_to_rest_and_has_nobody_called(self, leaving):
        assert not leaving.changes()
        pool = leaving.get("FairPool", "llama")
        pool["spec"]["endpoints"] = {**SMALLEST, "credentialRef": {"name": "missing"}}
        leaving.put(pool)
        assert states(leaving.compiled().pool_status)["ResolvedRefs"] == ("False", "SecretNotFound")
        assert leaving.compiled().events == ()


class TestAPoolThatCannotBeRead:
    @pytest.fixture
    def unread(self, serving):
        pool = serving.get("FairPool", "llama")
        pool["spec"]["defaultWeight"] = "heavy"
        serving.put(pool)
        return serving

    def test_changes_nothing_and_says_why(self, unread):
        written = unread.settle()
        assert (written.applies, written.removals) == ((), ())
        assert states(written.pool_status)["Accepted"] == ("False", "Unreadable")
        assert states(written.pool_status)["Stalled"] == ("True", "Unreadable")
        assert not unread.changes()

    def test_has_each_of_its_tenants_told_so_with_the_edition_that_is_not_in_force(self, unread):
        unread.put(tenant_weight("late"))
        written = edited(unread, apiKeys=[], suspend=True)
        assert [each.metadata.name for each in written.tenant_statuses] == ["late", "search"]
        for said in written.tenant_statuses:
            assert states(said) == {
                "Accepted": ("Unknown", "Pending"),
                "ResolvedRefs": ("False", "Unreadable"),
                "Programmed": ("Unknown", "Pending"),
                "Ready": ("False", "Unreadable"),
                "Stalled": ("True", "Unreadable"),
            }
            assert "see the conditions of FairPool inference/llama" in message(said, "Ready")
        assert {each.observed_generation for each in said.status.conditions} == {2}

    def test_leaves_its_tenants_their_weight_and_the_proof_that_a_gateway_uses_it(self, unread):
        before = unread.get("TenantWeight", "search")["status"]
        unread.settle()
        after = unread.get("TenantWeight", "search")["status"]
        assert (after["weight"], after["configHash"]) == (before["weight"], before["configHash"]) != (None, None)
        pool = unread.get("FairPool", "llama")
        del pool["spec"]["defaultWeight"]
        unread.put(pool)
        unread.remove("Pod", "gateway-1")
        unread.settle()
        assert unread.get("TenantWeight", "search")["status"] == before

    def test_says_nothing_of_a_tenant_that_is_being_deleted(self, unread):
        weight = unread.get("TenantWeight", "search")
        weight["metadata"].update(LEAVING)
        unread.put(weight)
        compiled: Compiled = unread.compiled()
        assert compiled.tenant_statuses == ()

    def test_is_told_of_once_in_an_event_for_each_resource(self, unread):
        assert [(each.kind, each.reason) for each in unread.compiled().events] == [
            ("FairPool", "Unreadable"),
            ("TenantWeight", "Unreadable"),
        ]
        unread.settle()
        assert unread.compiled().events == ()
