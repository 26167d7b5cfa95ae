"""Who shares a pool, with which weight and by which keys, and what each TenantWeight is told."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import pytest
from support.compiling import NOW, SmallCluster, message, states
from support.config import digest_of
from support.resources import fair_pool, gateway_pod, namespace, secret, tenant_weight

from fairpool_operator.compile import Settings
from fairpool_operator.compile.events import events
from fairpool_operator.resources import Condition

ALL = {"allowedTenants": {"namespaces": {"from": "All"}, "maxWeight": 300}}
CHOSEN = {"namespaces": {"from": "Selector", "selector": {"matchLabels": {"shares": "llama"}}}}
IN_A_SECRET = {"name": "k", "secretKeyRef": {"name": "search-key", "key": "api-key"}}


def cluster_of(*weights, **spec):
    return SmallCluster(fair_pool(**spec), gateway_pod(), *weights)


def tenants(cluster):
    """The weight of each tenant in the configuration."""
    return {each.name: each.weight for each in cluster.compiled().config.tenants}


def keys(cluster, tenant="search"):
    """The digest of each of a tenant's keys in the configuration."""
    return {
        key.name: key.digest for each in cluster.compiled().config.tenants if each.name == tenant for key in each.keys
    }


def said_of(cluster, name="search", now=NOW):
    return next(each for each in cluster.compiled(now).tenant_statuses if each.metadata.name == name)


def younger(name, ns="inference", seconds=1, **spec):
    created = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds)
    return tenant_weight(name, ns, meta={"creationTimestamp": f"{created:%Y-%m-%dT%H:%M:%SZ}"}, **spec)


class TestWeights:
    def test_are_their_own_or_the_pools_default(self):
        cluster = cluster_of(tenant_weight(weight=300), tenant_weight("batch"), defaultWeight=50)
        assert tenants(cluster) == {"search": 300, "batch": 50}
        assert [each.status.weight for each in cluster.compiled().tenant_statuses] == [50, 300]

    def test_from_other_namespaces_are_capped_and_this_is_said(self):
        cluster = cluster_of(tenant_weight("a", "team", weight=900), tenant_weight(weight=900), **ALL)
        assert tenants(cluster) == {"team/a": 300, "search": 900}
        said = said_of(cluster, "a")
        assert said.status.weight == 300
        assert "Its weight 900 is capped at 300" in message(said, "Accepted")

    def test_by_default_are_capped_for_other_namespaces_too(self):
        cluster = cluster_of(tenant_weight("a", "team"), allowedTenants={**ALL["allowedTenants"], "maxWeight": 7})
        assert tenants(cluster) == {"team/a": 7}


class TestConsent:
    @pytest.mark.parametrize(
        ("allowed", "labels", "taken"),
        [
            ({}, {"shares": "llama"}, False),
            ({"namespaces": {"from": "All"}}, None, True),
            (CHOSEN, {"shares": "llama"}, True),
            (CHOSEN, {"shares": "other"}, False),
            (CHOSEN, None, False),
        ],
    )
    def test_is_the_pools_to_give_to_other_namespaces(self, allowed, labels, taken):
        cluster = cluster_of(tenant_weight("a", "team"), allowedTenants=allowed)
        if labels is not None:
            cluster.put(namespace("team", **labels))
        assert tenants(cluster) == ({"team/a": 100} if taken else {})
        if not taken:
            assert states(said_of(cluster, "a"))["Accepted"] == ("False", "NotAllowed")
            assert states(said_of(cluster, "a"))["Stalled"] == ("True", "NotAllowed")

    def test_is_never_needed_in_the_pools_own_namespace(self):
        assert tenants(cluster_of(tenant_weight(), allowedTenants=CHOSEN)) == {"search": 100}

    def test_that_is_withdrawn_takes_the_tenant_out_and_leaves_the_others(self):
        cluster = cluster_of(tenant_weight("a", "team"), tenant_weight(), allowedTenants=CHOSEN)
        cluster.put(namespace("team", shares="llama"))
        assert tenants(cluster) == {"team/a": 100, "search": 100}
        cluster.put(namespace("team"))
        assert tenants(cluster) == {"search": 100}

    def test_cannot_be_told_by_labels_that_the_operator_must_not_see(self):
        settings = SmallCluster().settings
        blind = type(settings)(settings.gateway_image, namespaces=frozenset({"inference"}))
        cluster = SmallCluster(fair_pool(allowedTenants=CHOSEN), tenant_weight("a", "team"), settings=blind)
        assert "this operator's role does not let it read" in message(said_of(cluster, "a"), "Accepted")


class TestConflicts:
    def test_over_a_tenant_go_to_the_older_which_the_newer_is_told(self):
        cluster = cluster_of(younger("a", tenantName="search", weight=2), tenant_weight(weight=1))
        assert tenants(cluster) == {"search": 1}
        assert states(said_of(cluster, "a"))["Accepted"] == ("False", "Conflicted")
        assert "inference/search is for tenant search already" in message(said_of(cluster, "a"), "Accepted")
        assert states(said_of(cluster))["Accepted"] == ("True", "Accepted")

    def test_between_two_of_one_age_go_to_the_first_by_name(self):
        cluster = cluster_of(tenant_weight("b", tenantName="t"), tenant_weight("a", tenantName="t", weight=1))
        assert tenants(cluster) == {"t": 1}

    def test_end_when_the_older_is_deleted_or_on_its_way_out(self):
        cluster = cluster_of(younger("a", tenantName="search", weight=2), tenant_weight(weight=1))
        leaving = cluster.get("TenantWeight", "search")
        leaving["metadata"]["deletionTimestamp"] = "2026-05-01T12:00:00Z"
        cluster.put(leaving)
        assert tenants(cluster) == {"search": 2}
        assert [each.metadata.name for each in cluster.compiled().tenant_statuses] == ["a"]

    def test_do_not_arise_when_one_is_made_again(self):
        cluster = cluster_of(tenant_weight(), tenant_weight("batch"))
        before = cluster.compiled().config_hash
        cluster.remove("TenantWeight", "batch")
        cluster.put(younger("batch", seconds=60, apiKeys=tenant_weight("batch")["spec"]["apiKeys"]))
        assert cluster.compiled().config_hash == before

    def test_cannot_be_sought_from_another_namespace(self):
        cluster = cluster_of(tenant_weight("a", "team", tenantName="search"), younger("search", weight=9), **ALL)
        assert tenants(cluster) == {"team/search": 100, "search": 9}

    def test_over_a_key_go_to_the_older_and_the_newer_keeps_its_others(self):
        shared = {"name": "shared", "digest": digest_of("shared").upper().replace("SHA256", "sha256")}
        own = {"name": "own", "digest": digest_of("own")}
        cluster = cluster_of(
            tenant_weight(apiKeys=[{**shared, "digest": digest_of("shared")}]), younger("a", apiKeys=[shared, own])
        )
        assert keys(cluster, "a") == {"own": digest_of("own")}
        assert keys(cluster) == {"shared": digest_of("shared")}
        assert states(said_of(cluster, "a"))["Accepted"] == ("True", "Accepted")
        assert states(said_of(cluster, "a"))["ResolvedRefs"] == ("False", "KeyNotUnique")
        assert states(said_of(cluster, "a"))["Stalled"] == ("True", "KeyNotUnique")
        assert "TenantWeight inference/search's" in message(said_of(cluster, "a"), "ResolvedRefs")

    def test_over_a_key_go_to_the_pools_own_namespace_before_any_other(self):
        mine = [{"name": "k", "digest": digest_of("mine")}]
        cluster = cluster_of(tenant_weight("thief", "team", apiKeys=mine), younger("search", apiKeys=mine), **ALL)
        assert keys(cluster) == {"k": digest_of("mine")}
        assert keys(cluster, "team/thief") == {}
        assert states(said_of(cluster, "thief"))["ResolvedRefs"] == ("False", "KeyNotUnique")

    def test_over_a_key_are_not_won_by_one_that_is_refused(self):
        mine = [{"name": "k", "digest": digest_of("mine")}]
        cluster = cluster_of(tenant_weight("thief", "team", apiKeys=mine), younger("search", apiKeys=mine))
        assert keys(cluster) == {"k": digest_of("mine")}


class TestAPoolThatIsNotThere:
    def test_is_to_be_made_where_the_operator_would_see_it(self):
        cluster = SmallCluster(tenant_weight())
        assert "There is no FairPool inference/llama. Create it" in message(said_of(cluster), "ResolvedRefs")

    def test_may_be_where_the_operator_does_not_look(self):
        settings = Settings("fairpool:test", namespaces=frozenset({"team"}))
        cluster = SmallCluster(tenant_weight("search", "team"), settings=settings)
        assert "does not look at namespace inference" in message(said_of(cluster), "ResolvedRefs")


class TestEvents:
    def test_have_a_name_and_a_note_that_the_server_takes_whatever_the_resource_is_called(self):
        (event,) = cluster_of(tenant_weight("a" * 199 + "-" + "b" * 40, "team")).compiled().events
        assert re.fullmatch(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*", event.name)
        told = Condition(
            type="GatewayAvailable",
            status="False",
            observed_generation=1,
            last_transition_time="2026-05-01T12:00:00Z",
            reason="GatewayFailed",
            message="禁止" * 300,
        )
        (event,) = events("FairPool", event.metadata, [told], [])
        assert 1000 < len(event.message.encode()) <= 1024


class TestKeys:
    def test_are_read_in_the_tenants_own_namespace_without_the_space_around_them(self):
        cluster = cluster_of(tenant_weight("search", "team", apiKeys=[IN_A_SECRET]), **ALL)
        cluster.put(secret("search-key", api_key="the pool's own"))
        assert states(said_of(cluster))["ResolvedRefs"] == ("False", "SecretNotFound")
        cluster.put(secret("search-key", "team", api_key="sk-1\n"))
        assert keys(cluster, "team/search") == {"k": digest_of("sk-1")}
        assert states(said_of(cluster))["ResolvedRefs"] == ("True", "Resolved")

    @pytest.mark.parametrize(
        ("found", "reason"),
        [
            ([], "SecretNotFound"),
            ([secret("search-key", use="engine", api_key="k")], "SecretNotFound"),
            ([secret("search-key", use=None, api_key="k")], "SecretNotFound"),
            ([secret("search-key", other="k")], "KeyNotFound"),
            ([secret("search-key", api_key="\n")], "KeyUnusable"),
            ([secret("search-key", api_key="two words")], "KeyUnusable"),
        ],
    )
    def test_that_cannot_be_used_take_no_other_with_them(self, found, reason):
        other = {"name": "other", "digest": digest_of("other")}
        cluster = cluster_of(tenant_weight(apiKeys=[IN_A_SECRET, other]), tenant_weight("batch"))
        cluster.put(*found)
        assert keys(cluster) == {"other": digest_of("other")}
        assert states(said_of(cluster))["ResolvedRefs"] == ("False", reason)
        assert "Key k: Secret inference/search-key" in message(said_of(cluster), "ResolvedRefs")
        assert states(said_of(cluster, "batch"))["ResolvedRefs"] == ("True", "Resolved")

    def test_follow_their_secret_through_edit_deletion_and_return(self):
        cluster = cluster_of(tenant_weight(apiKeys=[IN_A_SECRET]), secret("search-key", api_key="1"))
        seen = [keys(cluster)]
        cluster.put(secret("search-key", api_key="2"))
        seen.append(keys(cluster))
        cluster.remove("Secret", "search-key")
        seen.append(keys(cluster))
        cluster.put({**secret("search-key", api_key="3")})
        seen.append(keys(cluster))
        assert seen == [{"k": digest_of("1")}, {"k": digest_of("2")}, {}, {"k": digest_of("3")}]

    def test_that_ended_stay_in_the_configuration_and_are_told_when_time_comes(self):
        old = {"name": "old", "digest": digest_of("old"), "notAfter": "2026-05-01T13:00:00Z"}
        new = {"name": "new", "digest": digest_of("new")}
        cluster = cluster_of(tenant_weight(apiKeys=[old, new]))
        before = cluster.compiled()
        end = datetime(2026, 5, 1, 13, tzinfo=UTC)
        assert before.changes_at == end
        after = cluster.compiled(end)
        assert (after.config, after.changes_at) == (before.config, None)
        assert "Key old ended at 2026-05-01T13:00:00Z: remove it." in message(said_of(cluster, now=end), "Accepted")
        assert states(said_of(cluster, now=end))["ResolvedRefs"] == ("True", "Resolved")

    def test_that_have_all_ended_stall_the_tenant(self):
        old = {"name": "old", "digest": digest_of("old"), "notAfter": "2026-04-01T00:00:00Z"}
        cluster = cluster_of(tenant_weight(apiKeys=[old]))
        assert states(said_of(cluster))["ResolvedRefs"] == ("False", "KeysEnded")

    def test_that_cannot_be_read_yet_are_not_said_to_have_ended_with_the_others(self):
        old = {"name": "old", "digest": digest_of("old"), "notAfter": "2026-04-01T00:00:00Z"}
        cluster = cluster_of(tenant_weight(apiKeys=[old, IN_A_SECRET]))
        assert states(said_of(cluster))["ResolvedRefs"] == ("False", "SecretNotFound")
        assert "Every key has ended" not in message(said_of(cluster), "ResolvedRefs")
        assert "Key old ended at" in message(said_of(cluster), "Accepted")

    def test_are_not_used_where_a_proxy_names_the_tenants(self):
        proxy = {"type": "TrustedHeader", "header": "x-tenant", "proxyCredentialRef": {"name": "proxy"}}
        cluster = cluster_of(tenant_weight(), secret("proxy", credential="k"), authentication=proxy)
        assert (tenants(cluster), keys(cluster)) == ({"search": 100}, {})
        assert "keys are not used" in message(said_of(cluster), "Accepted")

    def test_may_be_none_which_is_said(self):
        cluster = cluster_of(tenant_weight(apiKeys=[]))
        assert tenants(cluster) == {"search": 100}
        assert "It has no key" in message(said_of(cluster), "Accepted")


class TestQueues:
    def test_always_have_room_for_the_largest_request(self):
        cluster = cluster_of(tenant_weight(queue={"maxBytes": "1Mi", "maxRequests": 7}))
        [tenant] = cluster.compiled().config.tenants
        assert (tenant.queue.max_bytes, tenant.queue.max_requests) == (32 << 20, 7)
        assert "raised to 32Mi" in message(said_of(cluster), "Accepted")


class TestProgrammed:
    def served(self, *weights):
        cluster = cluster_of(*weights)
        cluster.settle()
        cluster.serve()
        cluster.settle()
        return cluster

    def test_an_edit_of_one_changes_what_is_said_about_no_other(self):
        cluster = self.served(tenant_weight(), tenant_weight("batch"), tenant_weight("chat"))
        cluster.put({**cluster.get("TenantWeight", "search"), "spec": tenant_weight(weight=7)["spec"]})
        for _ in range(3):
            written = cluster.settle()
            assert {each.metadata.name for each in written.tenant_statuses} <= {"search"}
            assert [each.wanted["kind"] for each in written.applies] in (["Secret"], [])
            cluster.serve()

    def test_a_new_part_is_programmed_when_the_gateway_uses_it(self):
        cluster = self.served(tenant_weight(apiKeys=[IN_A_SECRET]), secret("search-key", api_key="1"))
        assert states(said_of(cluster))["Programmed"] == ("True", "Programmed")
        cluster.put(secret("search-key", api_key="2"))
        cluster.settle()
        assert states(said_of(cluster))["Programmed"] == ("Unknown", "Pending")
        cluster.put(secret("search-key", api_key="1"))
        cluster.settle()
        assert states(said_of(cluster))["Programmed"] == ("True", "Programmed")

    def test_it_stays_so_while_the_gateway_is_away(self):
        cluster = self.served(tenant_weight())
        cluster.remove("Pod", "gateway-1")
        written = cluster.settle()
        assert written.tenant_statuses == ()
        assert states(said_of(cluster))["Ready"] == ("True", "Ready")


class TestUnreadable:
    def test_ones_are_told_so_and_harm_nobody(self):
        cluster = cluster_of(tenant_weight(), tenant_weight("bad", weight="heavy"))
        assert [each.metadata.name for each in cluster.compiled().events] == ["bad"]
        cluster.settle()
        cluster.settle()
        assert tenants(cluster) == {"search": 100}
        assert states(said_of(cluster, "bad"))["Stalled"] == ("True", "Unreadable")
        assert not cluster.changes()
        assert cluster.compiled().events == ()
