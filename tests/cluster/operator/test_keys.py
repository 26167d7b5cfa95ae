"""Keys come from Secrets that consent, follow every edit of them, and are never to be found anywhere else."""

import base64
import json
from datetime import UTC, datetime, timedelta

from support.cluster.client import CONFIG_MAP, DEPLOYMENT, FAIR_POOL, SECRET, TENANT_WEIGHT, Kind
from support.cluster.definitions import fair_pool, tenant_weight
from support.cluster.operating import config_in
from support.cluster.resources import by_secret, condition, digest, key_secret, says
from support.cluster.waiting import eventually

CONFIG = "llama-fairpool-config"


def keys_are(*values):
    """Whether a configuration's only tenant has just these keys."""
    digests = sorted(digest(value) for value in values)

    def holds(secret):
        config = config_in(secret)
        return sorted(key.digest for tenant in config.tenants for key in tenant.keys) == digests

    return holds


class TestAKey:
    async def test_is_taken_from_a_secret_and_follows_its_rotation(self, operator, admin, namespace):
        await admin.create(fair_pool(namespace))
        await admin.create(key_secret(namespace, "old", "first"))
        await admin.create(tenant_weight(namespace, apiKeys=[by_secret("old", "2026-q4")]))
        await eventually(admin, SECRET, CONFIG, namespace, keys_are("first"))
        await eventually(admin, TENANT_WEIGHT, "search", namespace, says("ResolvedRefs", "True"))
        await admin.create(key_secret(namespace, "new", "second"))
        both = {"spec": {"apiKeys": [by_secret("old", "2026-q4"), by_secret("new", "2027-q1")]}}
        await admin.patch(TENANT_WEIGHT, "search", namespace, both)
        await eventually(admin, SECRET, CONFIG, namespace, keys_are("first", "second"))
        await admin.patch(SECRET, "old", namespace, {"stringData": {"api-key": "third"}})
        await eventually(admin, SECRET, CONFIG, namespace, keys_are("third", "second"))

    async def test_whose_secret_goes_is_gone_and_is_back_with_it(self, operator, admin, namespace):
        await admin.create(fair_pool(namespace))
        await admin.create(key_secret(namespace, "only", "first"))
        await admin.create(tenant_weight(namespace, apiKeys=[by_secret("only")]))
        await eventually(admin, SECRET, CONFIG, namespace, keys_are("first"))
        await admin.delete(SECRET, "only", namespace)
        told = await eventually(
            admin, TENANT_WEIGHT, "search", namespace, says("ResolvedRefs", "False", "SecretNotFound")
        )
        assert f"kubectl label --overwrite secret -n {namespace} only" in condition(told, "Ready")["message"]
        await eventually(admin, SECRET, CONFIG, namespace, keys_are())
        await admin.create(key_secret(namespace, "only", "second"))
        await eventually(admin, SECRET, CONFIG, namespace, keys_are("second"))

    async def test_in_a_secret_without_the_label_is_not_read_until_it_has_it(self, operator, admin, namespace):
        await admin.create(fair_pool(namespace))
        await admin.create(key_secret(namespace, "quiet", "first", label=None))
        await admin.create(tenant_weight(namespace, apiKeys=[by_secret("quiet")]))
        await eventually(admin, TENANT_WEIGHT, "search", namespace, says("ResolvedRefs", "False", "SecretNotFound"))
        await admin.patch(SECRET, "quiet", namespace, {"metadata": {"labels": {"fairpool.dev/keys": "true"}}})
        await eventually(admin, SECRET, CONFIG, namespace, keys_are("first"))
        await admin.patch(SECRET, "quiet", namespace, {"metadata": {"labels": {"fairpool.dev/keys": None}}})
        await eventually(admin, SECRET, CONFIG, namespace, keys_are())

    async def test_that_ends_is_said_to_have_ended_when_it_does(self, operator, admin, namespace):
        soon = (datetime.now(UTC) + timedelta(seconds=4)).strftime("%Y-%m-%dT%H:%M:%SZ")
        await admin.create(fair_pool(namespace))
        await admin.create(tenant_weight(namespace, apiKeys=[{"name": "k", "digest": digest("x"), "notAfter": soon}]))
        await eventually(admin, TENANT_WEIGHT, "search", namespace, says("ResolvedRefs", "True"))
        await eventually(admin, TENANT_WEIGHT, "search", namespace, says("ResolvedRefs", "False", "KeysEnded"))

    async def test_of_two_tenants_is_the_older_ones(self, operator, admin, namespace):
        await admin.create(fair_pool(namespace))
        await admin.create(tenant_weight(namespace, "a", apiKeys=[{"name": "k", "digest": digest("x")}]))
        await eventually(admin, TENANT_WEIGHT, "a", namespace, says("ResolvedRefs", "True"))
        await admin.create(tenant_weight(namespace, "b", apiKeys=[{"name": "k", "digest": digest("x")}]))
        told = await eventually(admin, TENANT_WEIGHT, "b", namespace, says("ResolvedRefs", "False", "KeyNotUnique"))
        assert f"{namespace}/a" in condition(told, "Ready")["message"]
        assert condition(await admin.get(TENANT_WEIGHT, "a", namespace), "ResolvedRefs")["status"] == "True"
        await admin.delete(TENANT_WEIGHT, "a", namespace)
        await eventually(admin, TENANT_WEIGHT, "b", namespace, says("ResolvedRefs", "True"))


class TestNoSecretsValue:
    async def test_is_in_anything_that_the_operator_writes_or_says(self, operator, admin, namespace):
        values = [f"s3cret-{name}-{'x' * 24}" for name in ("search", "other", "engine")]
        await admin.create(key_secret(namespace, "search", values[0]))
        await admin.create(key_secret(namespace, "other", values[1]))
        await admin.create(key_secret(namespace, "engine", values[2], label="engine"))
        credential = {"name": "engine", "key": "api-key"}
        made = fair_pool(namespace)
        made["spec"]["endpoints"]["credentialRef"] = credential
        await admin.create(made)
        await admin.create(tenant_weight(namespace, "a", apiKeys=[by_secret("search")]))
        twice = [by_secret("search", "same"), by_secret("other"), by_secret("engine", "not-for-this")]
        await admin.create(tenant_weight(namespace, "b", apiKeys=twice))
        await eventually(admin, TENANT_WEIGHT, "b", namespace, says("ResolvedRefs", "False"))
        await eventually(admin, DEPLOYMENT, "llama-fairpool", namespace, lambda _: True)
        await eventually(admin, SECRET, CONFIG, namespace, keys_are(values[0], values[1]))
        await operator.listed_again()
        kinds = (FAIR_POOL, TENANT_WEIGHT, DEPLOYMENT, CONFIG_MAP, Kind("events.k8s.io/v1", "Event"))
        written = [json.dumps(each) for kind in kinds for each in await admin.list(kind, namespace)]
        config = await admin.get(SECRET, CONFIG, namespace)
        written += [json.dumps(config), config_in(config).model_dump_json(), operator.said]
        for value in values:
            for form in (value, base64.b64encode(value.encode()).decode().rstrip("=")):
                assert not any(form in text for text in written)
        assert any("not-for-this" in text for text in written)
