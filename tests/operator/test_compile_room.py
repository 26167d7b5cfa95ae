"""A pool whose tenants do not all fit into one Secret has room for its own namespace's first, then for the oldest."""

from __future__ import annotations

import gzip

import pytest
from support.compiling import SmallCluster, message, states
from support.config import digest_of
from support.resources import fair_pool, gateway_pod, tenant_weight

from fairpool_gateway.config import dump
from fairpool_operator.compile import config

ALL = {"allowedTenants": {"namespaces": {"from": "All"}}}


def with_keys(name, namespace="inference", age=0):
    """A TenantWeight that takes much room; a greater `age` is a newer one."""
    keys = [{"name": f"k{each}", "digest": digest_of(f"{namespace}/{name}/{each}")} for each in range(16)]
    return tenant_weight(name, namespace, meta={"creationTimestamp": f"2026-01-01T00:00:{age:02}Z"}, apiKeys=keys)


def strangers(count):
    """TenantWeights of another namespace, the oldest first; their names are in another order."""
    return [with_keys(f"t{(7 * age + 3) % count}", "team", age) for age in range(count)]


def pool_of(*weights):
    """A pool whose gateway uses the newest configuration."""
    cluster = SmallCluster(fair_pool(**ALL), gateway_pod(), *weights)
    cluster.settle()
    cluster.serve()
    cluster.settle()
    return cluster


def tenants(cluster):
    return {each.name for each in cluster.compiled().config.tenants}


def said(cluster, name):
    return next(each for each in cluster.compiled().tenant_statuses if each.metadata.name == name)


@pytest.fixture
def room_for(monkeypatch):
    """Let a Secret hold what these need, and no more."""

    def room_for(*weights):
        text = dump(SmallCluster(fair_pool(**ALL), *weights).compiled().config).encode()
        monkeypatch.setattr(config, "MOST_BYTES", len(gzip.compress(text, mtime=0)))

    return room_for


class TestWhereNotAllFit:
    @pytest.mark.parametrize("fitting", range(10))
    def test_the_newest_of_other_namespaces_are_left_out_and_no_more_than_have_to_be(self, room_for, fitting):
        home, others = with_keys("search", age=50), strangers(10)
        room_for(home, *others[:fitting])
        kept = {f"team/{each['metadata']['name']}" for each in others[:fitting]}
        assert tenants(pool_of(*others[::-1], home)) == {"search", *kept}

    @pytest.mark.parametrize("fitting", [1, 40, 77, 119])
    def test_few_are_tried_until_as_many_are_found_as_fit(self, room_for, monkeypatch, fitting):
        others = [with_keys(f"t{number:03}", "team", number % 60) for number in range(120)]
        others.sort(key=lambda each: (each["metadata"]["creationTimestamp"], each["metadata"]["name"]))
        room_for(with_keys("search"), *others[:fitting])
        tried, pack = [], config._packed
        monkeypatch.setattr(config, "_packed", lambda each: tried.append(len(each.tenants)) or pack(each))
        cluster = SmallCluster(fair_pool(**ALL), with_keys("search"), *others)
        assert len(tenants(cluster)) == 1 + fitting
        assert len(tried) <= 8

    @pytest.mark.parametrize("fitting", [0, 1, 700, 999])
    def test_not_many_are_tried_however_uneven_their_sizes_are(self, monkeypatch, fitting):
        """All but the first that has no room are exactly as large as may be, which tells nothing of where that is."""
        tried = []

        def packed(count):
            tried.append(count)
            return config.Packed(None, "", bytes(config.MOST_BYTES + (count > fitting)))

        monkeypatch.setattr(config, "_shared_by", lambda whole, own, others: len(others))
        monkeypatch.setattr(config, "_packed", packed)
        config._filled(None, (), range(1000), packed(0), packed(1000))
        assert {fitting, fitting + 1} <= set(tried)
        assert len(tried) <= 2 + 8 + 10

    def test_those_that_are_left_out_are_told_so_and_the_pool_says_how_many(self, room_for):
        home, others = with_keys("search"), strangers(10)
        room_for(home, *others[:8])
        cluster = pool_of(home, *others)
        left_out = said(cluster, others[8]["metadata"]["name"])
        assert states(left_out)["Accepted"] == ("False", "ConfigTooLarge")
        assert states(left_out)["Programmed"] == ("False", "NotAccepted")
        assert states(left_out)["Stalled"] == ("True", "ConfigTooLarge")
        assert left_out.status.weight is None
        pool = cluster.compiled().pool_status
        assert states(pool)["Ready"] == ("True", "Ready")
        assert (pool.status.tenants, pool.status.total_weight) == (9, 900)
        assert "2 more, of other namespaces, have no room" in message(pool, "Accepted")
        assert [each.metadata.namespace for each in cluster.compiled().refusals] == ["team", "team"]
        assert not cluster.changes()

    def test_what_the_pools_own_namespace_adds_and_withdraws_is_in_force(self, room_for):
        home, late, others = with_keys("search"), with_keys("late", age=59), strangers(10)
        room_for(home, late, *others[:3])
        cluster = pool_of(home, *others)
        cluster.put(late)
        assert tenants(cluster) - {"search", "late"} == {f"team/{each['metadata']['name']}" for each in others[:3]}
        suspended = cluster.get("TenantWeight", "search")
        suspended["spec"].update(apiKeys=[], suspend=True)
        cluster.put(suspended)
        cluster.settle()
        cluster.serve()
        assert cluster.compiled().config.suspended() == {"search"}
        assert states(said(cluster, "search"))["Programmed"] == ("True", "Programmed")
        assert states(said(cluster, "late"))["Programmed"] == ("True", "Programmed")

    def test_one_that_was_left_out_is_back_as_soon_as_there_is_room(self, room_for):
        home, others = with_keys("search"), strangers(4)
        room_for(home, *others[:3])
        cluster = pool_of(home, *others)
        newest = others[3]["metadata"]["name"]
        assert f"team/{newest}" not in tenants(cluster)
        cluster.remove("TenantWeight", "search")
        assert f"team/{newest}" in tenants(cluster)
        assert states(said(cluster, newest))["Accepted"] == ("True", "Accepted")

    def test_the_pool_says_it_where_its_own_namespace_alone_is_too_large(self, room_for):
        home = [with_keys("a"), with_keys("b", age=1)]
        room_for(home[0])
        cluster = pool_of(home[0], *strangers(3))
        before = tenants(cluster)
        cluster.put(home[1])
        compiled = cluster.compiled()
        assert (before, compiled.config) == ({"a"}, None)
        assert states(compiled.pool_status)["Accepted"] == ("False", "ConfigTooLarge")
        assert "(2 tenants, 32 keys)" in message(compiled.pool_status, "Accepted")
        assert states(said(cluster, "b"))["Programmed"] == ("False", "ConfigTooLarge")

    def test_it_is_found_in_few_tries_and_where_all_fit_in_one(self, room_for, monkeypatch):
        home, others = with_keys("search"), strangers(50)
        cluster = SmallCluster(fair_pool(**ALL), home, *others)
        packed, compress = [], gzip.compress

        def counted(text, *, mtime):
            packed.append(len(text))
            return compress(text, mtime=mtime)

        room_for(home, *others[:37])
        monkeypatch.setattr(gzip, "compress", counted)
        assert len(cluster.compiled().config.tenants) == 38
        assert len(packed) <= 2 + 6
        monkeypatch.setattr(config, "MOST_BYTES", 10**6)
        packed.clear()
        cluster.compiled()
        assert len(packed) == 1
