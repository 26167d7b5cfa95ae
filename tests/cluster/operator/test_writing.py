"""What is edited in a pool reaches what was made for it whole and soon, whatever has been repaired there."""

from __future__ import annotations

import asyncio
import time

import pytest
from support.cluster.client import DEPLOYMENT, FAIR_POOL, NETWORK_POLICY, SECRET, SERVICE, TENANT_WEIGHT, Kind
from support.cluster.definitions import fair_pool, tenant_weight
from support.cluster.operating import config_in
from support.cluster.resources import by_secret, condition, flood, key_secret, says
from support.cluster.waiting import eventually
from support.resources import pem

EVENT = Kind("events.k8s.io/v1", "Event")
CONFIG = "llama-fairpool-config"
PEER = {"podSelector": {"matchLabels": {"p": "1"}}}
TERM = {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}
NODE = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n"]}]}
PATIENT = {"key": "gpu", "operator": "Exists", "effect": "NoExecute"}


def on(term):
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    return {"podTemplate": {"affinity": {"nodeAffinity": required}}}


def edited(before, after):
    """The merge patch that makes one of the other."""
    if not isinstance(before, dict) or not isinstance(after, dict):
        return after
    taken_out = dict.fromkeys(before.keys() - after.keys())
    return {**taken_out, **{name: edited(before.get(name), each) for name, each in after.items()}}


def pod_of(found):
    return found["spec"]["template"]["spec"]


def terms_of(found):
    node = pod_of(found)["affinity"]["nodeAffinity"]
    return node["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]


TAKEN_OUT = {
    "a part of a peer": (
        {"networkPolicy": {"tenants": [{**PEER, "namespaceSelector": {"matchLabels": {"team": "a"}}}]}},
        {"networkPolicy": {"tenants": [PEER]}},
        NETWORK_POLICY,
        lambda found: found["spec"]["ingress"][0]["from"] == [PEER],
    ),
    "every peer": (
        {"networkPolicy": {"tenants": [PEER]}},
        {"networkPolicy": {"tenants": []}},
        NETWORK_POLICY,
        lambda found: "from" not in found["spec"]["ingress"][0],
    ),
    "a part of a toleration": (
        {"podTemplate": {"tolerations": [{**PATIENT, "tolerationSeconds": 60}]}},
        {"podTemplate": {"tolerations": [PATIENT]}},
        DEPLOYMENT,
        lambda found: PATIENT in pod_of(found)["tolerations"],
    ),
    "a part of an affinity": (
        on({**TERM, **NODE}),
        on(TERM),
        DEPLOYMENT,
        lambda found: terms_of(found) == [TERM],
    ),
    "a part of a node selector": (
        {"podTemplate": {"nodeSelector": {"zone": "a", "disk": "ssd"}}},
        {"podTemplate": {"nodeSelector": {"zone": "a"}}},
        DEPLOYMENT,
        lambda found: pod_of(found)["nodeSelector"] == {"zone": "a"},
    ),
}


class TestWhatIsTakenOutOfAPool:
    @pytest.mark.parametrize("case", TAKEN_OUT)
    async def test_is_taken_out_of_what_was_made_for_it(self, operator, admin, namespace, case):
        before, after, kind, is_out = TAKEN_OUT[case]
        await admin.create(fair_pool(namespace, gateway=before))
        assert not is_out(await eventually(admin, kind, "llama-fairpool", namespace, lambda _: True))
        # As a merge patch has it, a part at a time: what is null is taken out.
        await admin.patch(FAIR_POOL, "llama", namespace, {"spec": {"gateway": edited(before, after)}})
        await eventually(admin, kind, "llama-fairpool", namespace, is_out)


class TestWhatWasRepaired:
    @pytest.mark.parametrize("kind", [FAIR_POOL, TENANT_WEIGHT], ids=lambda kind: kind.name)
    async def test_in_a_status_is_taken_away_again_once_it_is_wanted_no_more(self, operator, admin, namespace, kind):
        credential = {"credentialRef": {"name": "a-key", "key": "api-key"}} if kind is FAIR_POOL else {}
        pool = fair_pool(namespace)
        pool["spec"]["endpoints"] = {**pool["spec"]["endpoints"], **credential}
        await admin.create(pool)
        await admin.create(tenant_weight(namespace, apiKeys=[by_secret("a-key")]))
        name = "llama" if kind is FAIR_POOL else "search"
        await eventually(admin, kind, name, namespace, says("Stalled", "True"))
        await admin.patch(kind, name, namespace, {"status": {"conditions": flood()}}, "status")
        await eventually(admin, kind, name, namespace, says("Stalled", "True"))
        await admin.create(key_secret(namespace, "a-key", "abc", label="engine" if kind is FAIR_POOL else "true"))
        await eventually(admin, kind, name, namespace, lambda found: not condition(found, "Stalled"))

    async def test_in_an_object_is_taken_away_again_once_it_is_wanted_no_more(self, operator, admin, namespace):
        await admin.create(fair_pool(namespace, gateway={"service": {"port": 80}}))
        await eventually(admin, SERVICE, "llama-fairpool", namespace, lambda _: True)
        await admin.patch(SERVICE, "llama-fairpool", namespace, {"spec": {"ports": [{"port": 81, "name": "http"}]}})
        await eventually(admin, SERVICE, "llama-fairpool", namespace, lambda found: ports_of(found) == [80])
        certificate = {"tls.crt": pem("CERTIFICATE"), "tls.key": pem("PRIVATE KEY")}
        await admin.create(key_secret(namespace, "certificate", "", label="tls", **certificate))
        over_tls = {"gateway": {"service": {"port": 443}, "tls": {"certificateRef": {"name": "certificate"}}}}
        await admin.patch(FAIR_POOL, "llama", namespace, {"spec": over_tls})
        await eventually(admin, SERVICE, "llama-fairpool", namespace, lambda found: ports_of(found) == [443])


def ports_of(service):
    return [each["port"] for each in service["spec"]["ports"]]


class TestAWeight:
    MANY = 600

    async def test_does_not_wait_until_all_statuses_are_said(self, operator, admin, namespace):
        await admin.create(fair_pool(namespace))
        await admin.create(tenant_weight(namespace, weight=5))
        many = [tenant_weight(namespace, f"t{number}") for number in range(self.MANY)]
        for first in range(0, self.MANY, 20):
            await asyncio.gather(*map(admin.create, many[first : first + 20]))

        def all_are_there(found):
            return found["status"].get("tenants") == self.MANY + 1

        await eventually(admin, FAIR_POOL, "llama", namespace, all_are_there, 120.0)
        # Now every status is to be written again.
        await admin.patch(FAIR_POOL, "llama", namespace, {"spec": {"defaultWeight": 50}})
        await eventually(admin, SECRET, CONFIG, namespace, lambda found: config_in(found).default_weight == 50)
        began = time.monotonic()
        await admin.patch(TENANT_WEIGHT, "search", namespace, {"spec": {"weight": 6}})
        await eventually(admin, SECRET, CONFIG, namespace, lambda found: config_in(found).weights()["search"] == 6)
        assert time.monotonic() - began < 3  # three times the second that is promised
        await eventually(
            admin,
            TENANT_WEIGHT,
            f"t{self.MANY - 1}",
            namespace,
            lambda found: found["status"].get("weight") == 50,
            60.0,
        )
