"""What holds of every decision, whatever is in the cluster; and that a decision that breaks it is caught."""

from __future__ import annotations

import base64
import copy
import gzip
import itertools
import json
import random
import re
from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from support.compiling import NOW, SETTINGS, SmallCluster
from support.config import digest_of
from support.crd_strategies import by_name, crowds, tenant_weights, worlds
from support.resources import NAMESPACE

from fairpool_gateway.config import KeySettings, ProxyCredentialSettings, dump
from fairpool_operator.compile import changes, compile_pool, config, keys, pool, pool_status, references, tenants
from fairpool_operator.compile.objects import common, network
from fairpool_operator.resources import conditions
from fairpool_operator.view import OWNED_KINDS, View, secrets

LATER = NOW + timedelta(minutes=5)
_SLOW_TO_DRAW = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example]


def nothing_is_refused_by_an_exception(world):
    """The decision is made; every condition says something, in a form that the server takes."""
    compiled = SmallCluster(*world).compiled()
    said = [*compiled.tenant_statuses, *([compiled.pool_status] if compiled.pool_status else [])]
    for condition in (each for one in said for each in one.status.conditions):
        assert re.fullmatch(r"[A-Za-z][A-Za-z0-9]{0,63}", condition.reason)
        assert 1 <= len(condition.message) <= 4096
    for event in compiled.events:
        assert 1 <= len(event.message) <= 1024


def order_does_not_matter(world):
    """The same resources in another order, told in another order, give the same decision."""
    view = SmallCluster(*world).view
    again = SmallCluster(*random.Random(len(world)).sample(world, len(world))).view
    assert _decided(again) == _decided(view)
    assert _decided(_turned_around(view)) == _decided(view)


def everything_is_the_pools_own(world):
    """Every object has its name, its labels and its owner, and nothing of the pool's own labels."""
    for each in SmallCluster(*world).compiled().objects:
        metadata = each["metadata"]
        assert each["kind"] in OWNED_KINDS
        assert metadata["name"] == ("llama-fairpool-config" if each["kind"] == "Secret" else "llama-fairpool")
        assert metadata["namespace"] == "inference"
        assert metadata["labels"]["fairpool.dev/pool"] == "llama"
        assert [owner["uid"] for owner in metadata["ownerReferences"]] == ["uid-of-inference-llama"]
        assert "copied" not in json.dumps(each)


def no_value_of_a_secret_comes_out(world):
    """No value is in anything that is decided, the configuration that the gateway gets included."""
    compiled = SmallCluster(*world).compiled()
    assert "sk-secret" not in repr(compiled)
    for each in compiled.objects:
        if each["kind"] == "Secret":
            text = gzip.decompress(base64.b64decode(each["data"]["config.json.gz"]))
            assert b"sk-secret" not in text
            assert base64.b64encode(b"sk-secret")[:10] not in text


def it_comes_to_rest(world):
    """Once all is written there is nothing to write, nothing to tell, and later no condition's time has moved."""
    cluster = SmallCluster(*world)
    for _ in range(3):
        cluster.settle()
    assert not cluster.changes()
    compiled = cluster.compiled()
    assert compiled.events == ()
    if compiled.changes_at is None or compiled.changes_at > LATER:
        assert not changes(compile_pool(cluster.view, SETTINGS, LATER), cluster.view)


def what_is_said_decides_nothing(world):
    """Once statuses are written nothing else is wanted, and nothing else is to be said."""
    cluster = SmallCluster(*world)
    for _ in range(2):
        wanted = cluster.changes()
        cluster.say(wanted)
        assert cluster.changes() == replace(wanted, tenant_statuses=(), pool_status=None)
        cluster.settle()


CHECKS = [
    nothing_is_refused_by_an_exception,
    order_does_not_matter,
    everything_is_the_pools_own,
    no_value_of_a_secret_comes_out,
    it_comes_to_rest,
    what_is_said_decides_nothing,
]


def nobody_is_harmed_by(newcomer, world):
    """What a newcomer is or does changes nothing for those that come first, nor for anybody if it is refused."""
    before = SmallCluster(*world)
    after = SmallCluster(*world, newcomer)
    was, now = _told(before), _told(after)
    uid = newcomer["metadata"]["uid"]
    is_refused = uid not in now or now[uid].weight is None
    place = _place(newcomer)
    for each in (each for each in world if each["kind"] == "TenantWeight" and each["metadata"]["uid"] in was):
        if is_refused or _place(each) < place:
            assert now[each["metadata"]["uid"]] == was[each["metadata"]["uid"]]
    if is_refused:
        assert after.compiled().config == before.compiled().config


def strangers_take_no_room(newcomer, world):
    """One more from another namespace, for whom there is no room, changes nothing for those of the pool's own."""
    before = SmallCluster(*world)
    compiled = before.compiled()
    if compiled.config is None:
        return
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(config, "MOST_BYTES", len(gzip.compress(dump(compiled.config).encode(), mtime=0)))
        after = SmallCluster(*world, newcomer).compiled()
    assert after.config is not None
    statuses = {each.metadata.uid: each.status for each in after.tenant_statuses}
    for uid, was in _told(before).items():
        if _is_at_home(uid):
            assert statuses[uid] == was
    assert [each for each in after.config.tenants if "/" not in each.name] == [
        each for each in compiled.config.tenants if "/" not in each.name
    ]


def _is_at_home(uid):
    return uid.startswith(f"uid-of-{NAMESPACE}-")


def _decided(view):
    compiled = compile_pool(view, SETTINGS, NOW)
    statuses = {each.metadata.uid: each.status for each in compiled.tenant_statuses}
    return compiled.config_hash, compiled.objects, compiled.removals, compiled.pool_status, statuses


def _turned_around(view):
    return View(
        key=view.key,
        pool=view.pool,
        unread_pool=view.unread_pool,
        weights=view.weights[::-1],
        unread_weights=view.unread_weights[::-1],
        secrets=dict(reversed(view.secrets.items())),
        namespaces=dict(reversed(view.namespaces.items())),
        owned=dict(reversed(view.owned.items())),
        pods=view.pods[::-1],
    )


def _told(cluster):
    return {each.metadata.uid: each.status for each in cluster.compiled().tenant_statuses}


def _place(weight):
    """Who comes first: those of the pool's namespace, then the older."""
    metadata = weight["metadata"]
    return metadata["namespace"] != NAMESPACE, metadata["creationTimestamp"], metadata["namespace"], metadata["name"]


newcomers = tenant_weights(names=st.sampled_from(["newcomer", "0-first-by-name"]))
strangers = newcomers.filter(lambda each: each["metadata"]["namespace"] != NAMESPACE)


class TestEveryDecision:
    @settings(max_examples=40, deadline=None, suppress_health_check=_SLOW_TO_DRAW)
    @given(worlds | crowds)
    def test_is_total_in_no_order_the_pools_own_silent_about_secrets_and_at_rest(self, world):
        for check in CHECKS:
            check(copy.deepcopy(world))

    @settings(max_examples=25, deadline=None, suppress_health_check=_SLOW_TO_DRAW)
    @given(newcomers, worlds | crowds)
    def test_harms_nobody_for_the_sake_of_another(self, newcomer, world):
        nobody_is_harmed_by(newcomer, by_name(world))

    @settings(max_examples=25, deadline=None, suppress_health_check=[*_SLOW_TO_DRAW, HealthCheck.filter_too_much])
    @given(strangers, worlds | crowds)
    def test_has_room_for_those_of_the_pools_namespace_before_any_other(self, stranger, world):
        strangers_take_no_room(stranger, by_name(world))


def is_ever_caught(check, *drawn):
    """Whether a check fails in any of many worlds."""

    @settings(
        max_examples=300,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(st.tuples(*drawn))
    def holds(values):
        check(*values)

    try:
        holds()
    except (AssertionError, KeyError, ExceptionGroup):
        return True
    return False


def _without_a_label(*arguments, **fields):
    made = common.named(*arguments, **fields)
    del made["metadata"]["labels"]["fairpool.dev/pool"]
    return made


_moments = itertools.count()
_compress = gzip.compress


def _at_its_time(text, mtime):
    return _compress(text, mtime=next(_moments))


def _with_no_memory(findings, *, before, generation, now):
    return conditions(findings, before=(), generation=generation, now=now)


def _counting_those_before(findings, *, before, **fields):
    counted = [replace(each, message=f"{each.message} ({len(before)})") for each in findings]
    return conditions(counted, before=before, **fields)


def _unsorted(values, key=None):
    return list(values)


def _youngest_first(values, key=None):
    return sorted(values, key=key, reverse=True)


def _as_it_is(value):
    return value.decode(errors="replace")


def _unchecked_key(digest, **fields):
    return KeySettings(digest=digest_of("any"), **fields).model_copy(update={"digest": digest})


def _unchecked(view, namespace, name, key, use, field):
    return view.secrets[namespace, name].values[key]


BROKEN = {
    "trusts references": (nothing_is_refused_by_an_exception, worlds, {(references, "value_of"): _unchecked}),
    "takes tenants as they come": (order_does_not_matter, crowds, {(tenants, "sorted"): _unsorted}),
    "forgets a label": (everything_is_the_pools_own, worlds, {(network, "named"): _without_a_label}),
    "keeps keys as they are": (
        no_value_of_a_secret_comes_out,
        crowds,
        {
            (secrets, "_digest"): _as_it_is,
            (keys, "KeySettings"): _unchecked_key,
            (references, "ProxyCredentialSettings"): ProxyCredentialSettings.model_construct,
        },
    ),
    "packs the time": (it_comes_to_rest, worlds, {(gzip, "compress"): _at_its_time}),
    "forgets when conditions flipped": (it_comes_to_rest, worlds, {(pool_status, "conditions"): _with_no_memory}),
    "says how much it said": (
        what_is_said_decides_nothing,
        worlds,
        {(pool_status, "conditions"): _counting_those_before},
    ),
}


class TestABrokenDecisionIsCaught:
    @pytest.mark.parametrize("name", BROKEN)
    def test_that(self, name):
        check, drawn, changed = BROKEN[name]
        with pytest.MonkeyPatch.context() as patch:
            for (module, attribute), broken in changed.items():
                patch.setattr(module, attribute, broken, raising=False)
            assert is_ever_caught(check, drawn)

    def test_that_prefers_the_youngest(self):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(tenants, "sorted", _youngest_first, raising=False)
            assert is_ever_caught(nobody_is_harmed_by, newcomers, crowds)

    def test_that_has_room_for_all_alike(self):
        def alike(fields, own, others):
            return config.configured(fields, (*own, *others))

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(pool, "configured", alike)
            assert is_ever_caught(strangers_take_no_room, strangers, crowds)
