"""What the API server refuses, in words that say what to do."""

from __future__ import annotations

import asyncio

import pytest
from support.cluster.bad_resources import SENT, BadResource, bad_resources, patched
from support.cluster.client import Refused
from support.cluster.definitions import definitions, dry_run, fair_pool, tenant_weight
from support.definition_walks import parts, schema_of

pytestmark = pytest.mark.usefixtures("crds")

NAMESPACE = "default"
"""Where nothing is made, only tried."""


async def tried(admin, document) -> str:
    """What the server says when a resource is about to be made: nothing if it would be."""
    try:
        await dry_run(admin, document)
    except Refused as refused:
        return refused.message
    return ""


async def all_tried(admin):
    """What is said of each case of the table."""
    cases = bad_resources()
    said = await asyncio.gather(*(tried(admin, case.document(NAMESPACE)) for case in cases))
    return dict(zip(cases, said, strict=True))


@SENT
class TestBadResources:
    async def test_break_every_rule_and_are_refused_in_the_words_of_the_table(self, admin):
        said = await all_tried(admin)
        assert {case.case: words for case, words in said.items() if not tells(case, words)} == {}
        assert [message for message in messages() if message not in " ".join(said.values())] == []

    async def test_would_be_told_if_one_were_admitted(self, admin):
        good = BadResource("FairPool", "nothing is wrong", {"spec": {"suspend": True}}, "spec.suspend", "must not")
        assert not tells(good, await tried(admin, good.document(NAMESPACE)))

    @pytest.mark.parametrize(
        ("where", "key"),
        [
            ("digest", "sk-1234"),
            ("digest", "sk-" + "a1" * 100),
            ("secretKeyRef.name", "sk-Proj_1234"),
            ("secretKeyRef.name", "sk-" + "A1" * 200),
        ],
    )
    async def test_are_refused_without_repeating_a_key_in_the_wrong_place(self, admin, where, key):
        wrong = {"digest": key} if where == "digest" else {"secretKeyRef": {"name": key, "key": "api-key"}}
        said = await tried(admin, tenant_weight(NAMESPACE, apiKeys=[{"name": "a", **wrong}]))
        assert f"spec.apiKeys[0].{where}" in said
        assert key not in said


class TestPoolRef:
    @pytest.mark.parametrize(
        ("before", "change"),
        [
            ({"name": "llama"}, {"name": "other"}),
            ({"name": "llama"}, {"namespace": "inference"}),
            ({"name": "llama", "namespace": "inference"}, {"namespace": None}),
        ],
    )
    async def test_can_never_be_changed(self, admin, namespace, before, change):
        made = await admin.create(tenant_weight(namespace, poolRef=before))
        with pytest.raises(Refused, match="cannot be changed, for a tenant's charges belong to one pool"):
            await admin.replace(patched(made, {"spec": {"poolRef": change}}))

    async def test_stays_while_all_else_changes(self, admin, namespace):
        made = await admin.create(tenant_weight(namespace))
        changed = await admin.replace(patched(made, {"spec": {"weight": 300, "tenantName": "find", "suspend": True}}))
        assert changed["spec"] == {**made["spec"], "weight": 300, "tenantName": "find", "suspend": True}


KEY = "a." * 121 + "example.com/" + "b" * 59
LABELS = {f"{KEY}{number:04}": "v" * 63 for number in range(16)}
REQUIREMENT = {"key": KEY, "operator": "In", "values": [f"{number:02}" + "v" * 61 for number in range(32)]}
SELECTOR = {"matchLabels": LABELS, "matchExpressions": [REQUIREMENT] * 16}
SMALLER = {"matchLabels": LABELS, "matchExpressions": [REQUIREMENT]}
PEERS = [{"namespaceSelector": SMALLER, "podSelector": SMALLER}] * 16
NEAR = {"weight": 1, "podAffinityTerm": {"topologyKey": "a" * 317, "labelSelector": SMALLER}}
LARGEST = {
    "names": {
        "models": [f"{number:02}" + "m" * 254 for number in range(64)],
        "extraPaths": [f"/{number:02}" + "/p" * 7 + "p" * 111 for number in range(32)],
        "endpoints": {
            "selector": SELECTOR,
            "targetPorts": [{"number": number} for number in range(65520, 65536)],
            "accelerators": {"resourceNames": [f"{'a.' * 126}a/{number:02}" + "b" * 61 for number in range(32)]},
        },
        "allowedTenants": {"namespaces": {"from": "Selector", "selector": SELECTOR}},
    },
    "callers": {"gateway": {"networkPolicy": {"tenants": PEERS, "monitoring": PEERS}}},
    "template": {
        "gateway": {
            "service": {"annotations": {f"{KEY}{number:04}": "v" * 1024 for number in range(32)}},
            "podTemplate": {
                "labels": {f"{KEY}{number:04}": "v" * 63 for number in range(32)},
                "annotations": {f"{KEY}{number:04}": "v" * 1024 for number in range(32)},
                "nodeSelector": LABELS,
                "tolerations": [{"key": KEY, "value": "v" * 63}] * 16,
                "affinity": {"podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [NEAR] * 8}},
            },
        }
    },
}


class TestEverythingAtItsBound:
    """Rules cost something to check, and the server refuses what would cost too much."""

    @pytest.mark.parametrize("part", ["names", "callers", "template"])
    async def test_is_admitted_of_a_pool(self, admin, part):
        assert await tried(admin, fair_pool(NAMESPACE, "a" * 50, **LARGEST[part])) == ""

    async def test_is_admitted_of_a_tenant(self, admin):
        keys = [{"name": f"{number:02}" + "k" * 61, "digest": f"sha256:{number:064x}"} for number in range(16)]
        weight = tenant_weight(
            NAMESPACE, "a" * 253, poolRef={"name": "a" * 50, "namespace": "b" * 63}, tenantName="t" * 253, apiKeys=keys
        )
        assert await tried(admin, weight) == ""


def tells(case: BadResource, said: str) -> bool:
    return case.says in said and case.place in said


def messages():
    """What the rules of the definitions say, but for the one about an edit."""
    return {
        rule["message"]
        for definition in definitions()
        for part in parts(schema_of(definition))
        for rule in part.get("x-kubernetes-validations", ())
        if "oldSelf" not in rule["rule"]
    }
