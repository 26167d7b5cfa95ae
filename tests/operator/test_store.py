"""The store knows the newest that it was told, says which pools to look at, and keeps no Secret's value."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st
from support.resources import SMALLEST, fair_pool, gateway_pod, metadata, namespace, secret, tenant_weight

from fairpool_operator.store import Store
from fairpool_operator.store.table import Table
from fairpool_operator.view import PoolKey

LLAMA = PoolKey("inference", "llama")
CREDENTIAL = {**SMALLEST, "credentialRef": {"name": "engine-key"}}
SEARCH_KEY = [{"name": "k", "secretKeyRef": {"name": "search-key", "key": "api-key"}}]


def store_of(**kinds):
    store = Store()
    for kind, resources in kinds.items():
        store.replace(kind, resources, store.begin())
    return store


def weights_in(store, key=LLAMA):
    return [(each.metadata.name, each.spec.weight) for each in store.view(key).weights]


class TestWhoIsTouched:
    def test_a_pool_by_itself_its_tenants_and_what_carries_its_name(self):
        store = Store()
        assert store.put("FairPool", fair_pool()) == {LLAMA}
        assert store.put("TenantWeight", tenant_weight()) == {LLAMA}
        assert store.put("Pod", gateway_pod()) == {LLAMA}
        assert store.put("Service", {"kind": "Service", "metadata": metadata("llama-fairpool")}) == {LLAMA}
        assert store.put("Secret", secret("llama-fairpool-config", use="config")) == {LLAMA}

    def test_a_pool_by_the_secrets_that_it_or_a_tenant_of_its_names(self):
        store = store_of(FairPool=[fair_pool(endpoints=CREDENTIAL)], TenantWeight=[tenant_weight(apiKeys=SEARCH_KEY)])
        assert store.put("Secret", secret("engine-key", use="engine", api_key="k")) == {LLAMA}
        assert store.put("Secret", secret("search-key", api_key="k")) == {LLAMA}
        assert store.put("Secret", secret("search-key", "elsewhere", api_key="k")) == frozenset()
        assert store.put("Secret", secret("unknown", api_key="k")) == frozenset()

    def test_a_pool_by_the_namespaces_of_foreign_tenants(self):
        store = store_of(TenantWeight=[tenant_weight(), tenant_weight("a", "team")])
        assert store.put("Namespace", namespace("team", shares="yes")) == {LLAMA}
        assert store.put("Namespace", namespace("team", shares="yes")) == frozenset()
        assert store.put("Namespace", namespace("inference")) == frozenset()

    def test_both_pools_when_a_tenant_is_made_again_for_another(self):
        store = store_of(TenantWeight=[tenant_weight()])
        again = tenant_weight(pool="qwen", meta={"uid": "2"})
        assert store.put("TenantWeight", again) == {LLAMA, PoolKey("inference", "qwen")}

    def test_nobody_by_the_same_again_or_by_what_decides_nothing(self):
        store = Store()
        pool = fair_pool()
        store.put("FairPool", pool)
        assert store.put("FairPool", pool) == frozenset()
        assert store.put("FairPool", fair_pool(meta={"labels": {"a": "b"}})) == frozenset()
        assert store.put("Pod", {"kind": "Pod", "metadata": metadata("vllm-0"), "status": {}}) == frozenset()
        assert store.put("Deployment", {"kind": "Deployment", "metadata": metadata("other")}) == frozenset()

    def test_everybody_whose_objects_a_list_lacks(self):
        store = store_of(FairPool=[fair_pool(), fair_pool("qwen")], TenantWeight=[tenant_weight(pool="mistral")])
        assert store.replace("FairPool", [fair_pool("qwen")], store.begin()) == {LLAMA}
        assert store.replace("TenantWeight", [], store.begin()) == {PoolKey("inference", "mistral")}
        assert store.keys() == {PoolKey("inference", "qwen")}

    def test_by_what_cannot_be_read_as_well(self):
        store = Store()
        assert store.put("TenantWeight", tenant_weight(weight="heavy")) == {LLAMA}
        assert [each.metadata.name for each in store.view(LLAMA).unread_weights] == ["search"]
        assert store.put("FairPool", {**fair_pool(), "spec": {}}) == {LLAMA}
        unread = store.view(LLAMA).unread_pool
        assert unread is not None
        assert "spec.endpoints" in unread.problem


class TestTheNewest:
    def test_an_older_version_never_replaces_a_newer_one(self):
        older, newer = tenant_weight(weight=1), tenant_weight(weight=2)
        store = Store()
        store.put("TenantWeight", newer)
        assert store.put("TenantWeight", older) == frozenset()
        assert weights_in(store) == [("search", 2)]

    def test_a_late_removal_of_what_had_the_name_before_removes_nothing(self):
        first, second = tenant_weight(meta={"uid": "1"}), tenant_weight(meta={"uid": "2"})
        store = Store()
        store.put("TenantWeight", second)
        assert store.remove("TenantWeight", first) == frozenset()
        assert weights_in(store) == [("search", None)]

    def test_what_was_deleted_while_a_list_was_read_stays_gone(self):
        weight = tenant_weight()
        store = store_of(TenantWeight=[weight])
        begun = store.begin()
        assert store.remove("TenantWeight", weight) == {LLAMA}
        assert store.replace("TenantWeight", [weight], begun) == frozenset()
        assert weights_in(store) == []

    def test_what_was_deleted_stays_gone_after_a_list_though_an_older_event_comes_late(self):
        weight = tenant_weight()
        store = store_of(TenantWeight=[weight])
        store.remove("TenantWeight", weight)
        store.replace("TenantWeight", [], store.begin())
        assert store.put("TenantWeight", weight) == frozenset()
        assert weights_in(store) == []

    def test_what_came_while_a_list_was_read_stays(self):
        store = Store()
        begun = store.begin()
        store.put("TenantWeight", tenant_weight())
        assert store.replace("TenantWeight", [], begun) == frozenset()
        assert weights_in(store) == [("search", None)]
        assert store.replace("TenantWeight", [], store.begin()) == {LLAMA}

    def test_what_left_a_watch_by_its_labels_comes_back_with_them(self):
        labelled, unlabelled = secret("search-key", api_key="k"), secret("search-key", api_key="k")
        store = store_of(TenantWeight=[tenant_weight(apiKeys=SEARCH_KEY)], Secret=[labelled])
        assert store.remove("Secret", unlabelled) == {LLAMA}
        assert store.put("Secret", labelled) == frozenset()
        assert store.put("Secret", secret("search-key", api_key="k")) == {LLAMA}


def said(**ready):
    """A status with this Ready condition."""
    return {"conditions": [{"type": "Ready", "lastTransitionTime": "2026-01-01T00:00:00Z", "message": "", **ready}]}


class TestWhatIsNotReady:
    def test_is_all_but_what_says_that_it_is(self):
        store = Store()
        assert store.unready() == (0, 0)
        store.put("FairPool", fair_pool())
        store.put("FairPool", fair_pool("qwen", status=said(status="False", reason="GatewayFailed")))
        store.put("TenantWeight", tenant_weight(status=said(status="Unknown", reason="Pending")))
        assert store.unready() == (2, 1)
        store.put("FairPool", fair_pool(status=said(status="True", reason="Ready")))
        store.put("TenantWeight", tenant_weight(status=said(status="True", reason="Ready")))
        assert store.unready() == (1, 0)

    def test_is_what_cannot_be_read_too(self):
        store = store_of(FairPool=[fair_pool(slots={"perEndpoint": "many"})])
        assert store.unready() == (1, 0)


class TestAClusterThatWasSetBack:
    def test_is_followed_by_the_next_list(self):
        old, new, made_since = tenant_weight(weight=3), tenant_weight(weight=7), tenant_weight("b")
        store = store_of(TenantWeight=[new, made_since])
        assert store.remove("TenantWeight", made_since) == {LLAMA}
        assert store.put("TenantWeight", old) == frozenset()
        assert store.replace("TenantWeight", [old, made_since], store.begin()) == {LLAMA}
        assert weights_in(store) == [("b", None), ("search", 3)]


class TestAListOfOneNamespace:
    def test_says_nothing_of_the_others(self):
        here, there = fair_pool(), {**fair_pool(), "metadata": metadata("llama", "team")}
        store = store_of(FairPool=[here, there])
        assert store.replace("FairPool", [], store.begin(), "team") == {PoolKey("team", "llama")}
        assert store.keys() == {LLAMA}

    def test_lets_nothing_come_back_that_was_deleted_in_another_however_often_it_is_made(self):
        weight = tenant_weight()
        store = store_of(TenantWeight=[weight])
        store.remove("TenantWeight", weight)
        for _ in range(3):
            store.replace("TenantWeight", [], store.begin(), "team")
        assert store.put("TenantWeight", weight) == frozenset()

    def test_forgets_in_the_end_what_was_deleted_there(self):
        table = Table(lambda resource: resource)
        list(table.remove(tenant_weight(), 1))
        for moment in (2, 3):
            assert len(table._gone) + len(table._gone_longer) == 1
            list(table.replace([], moment, moment, "inference"))
        assert len(table._gone) + len(table._gone_longer) == 0


class TestWhatNoListHolds:
    def test_stays_until_it_is_known_to_be_gone(self):
        service = {"kind": "Service", "metadata": metadata("llama-fairpool", labels={"app": "somebody-elses"})}
        store = Store()
        store.put("Service", service)
        assert store.replace("Service", [], store.begin()) == frozenset()
        assert "Service" in store.view(LLAMA).owned
        assert store.remove("Service", service) == {LLAMA}
        assert store.view(LLAMA).owned == {}

    def test_is_what_lacks_the_label_of_its_kind(self):
        managed = {"app.kubernetes.io/managed-by": "fairpool-operator"}
        store = Store()
        store.put("Service", {"kind": "Service", "metadata": metadata("llama-fairpool", labels=managed)})
        store.put("Secret", secret("llama-fairpool-config", use="config"))
        for kind in ("Service", "Secret"):
            assert store.replace(kind, [], store.begin()) == {LLAMA}
        assert store.view(LLAMA).owned == {}


def told(events, table_class=Table):
    """What a table knows after events and lists that each arrive at any time after they were true."""
    table = table_class(lambda resource: resource["value"])
    for moment, (kind, payload, begun) in enumerate(events, start=1):
        match kind:
            case "put":
                list(table.put(payload, moment))
            case "remove":
                list(table.remove(payload, moment))
            case "list":
                list(table.replace(payload, begun, moment))
    return {name[1]: table.get(name) for name in table.names()}


@st.composite
def histories(draw):
    """A cluster's history and what is told of it: its events in order, and lists that arrive late."""
    rng = random.Random(draw(st.integers(0, 2**32)))
    there, events, pending = {}, [], None
    for version in range(1, rng.randrange(3, 32)):
        name = rng.choice("ab")
        if name in there and rng.random() < 0.4:
            gone = there.pop(name)
            events.append(("remove", _at(gone, version), 0))
        else:
            uid = there[name]["metadata"]["uid"] if name in there else f"uid-{version}"
            there[name] = {"metadata": {"name": name, "uid": uid, "resourceVersion": str(version)}, "value": version}
            events.append(("put", there[name], 0))
        if pending is None and rng.random() < 0.3:
            pending = (list(there.values()), len(events))
        elif pending is not None and rng.random() < 0.3:
            events.append(("list", *pending))
            pending = None
    return events, {name: each["value"] for name, each in there.items()}


def _at(resource, version):
    return {**resource, "metadata": {**resource["metadata"], "resourceVersion": str(version)}}


class TestLateLists:
    @given(histories())
    def test_never_undo_what_was_told_since(self, history):
        events, there = history
        assert told(events) == there

    def test_would_undo_it_in_a_table_that_forgets_what_was_deleted(self):
        class Forgetful(Table):
            def remove(self, resource, at):
                yield from super().remove(resource, at)
                self._gone.clear()

        assert _is_ever_wrong(Forgetful)

    def test_would_undo_it_in_a_table_that_takes_a_list_for_all_there_is(self):
        class Credulous(Table):
            def replace(self, resources, begun, at, within=None):
                yield from super().replace(resources, at, at, within)

        assert _is_ever_wrong(Credulous)


def _is_ever_wrong(table_class):
    @given(histories())
    def holds(history):
        events, there = history
        assert told(events, table_class) == there

    try:
        holds()
    except AssertionError:
        return True
    return False


class TestSecrets:
    def test_no_value_is_kept_in_any_form_but_a_keys_digest(self):
        pool = fair_pool(endpoints=CREDENTIAL)
        annotated = secret("llama-fairpool-config", use="config", config="sk-secret-3")
        annotated["metadata"]["annotations"] = {"kubectl.kubernetes.io/last-applied-configuration": "sk-secret-4"}
        store = store_of(
            FairPool=[pool],
            TenantWeight=[tenant_weight(apiKeys=SEARCH_KEY)],
            Secret=[
                secret("search-key", api_key="sk-secret-1\n"),
                secret("engine-key", use="engine", api_key="sk-secret-2"),
                annotated,
            ],
        )
        view = store.view(LLAMA)
        assert "sk-secret" not in repr(view)
        assert b"sk-secret" not in view.owned["Secret"].text
        key = view.secrets["inference", "search-key"].values["api-key"]
        engine = view.secrets["inference", "engine-key"].values["api-key"]
        assert (key.digest is not None, key.fits_a_header, engine.digest) == (True, True, None)
