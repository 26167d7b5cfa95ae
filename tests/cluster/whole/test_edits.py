"""What people edit of a pool that serves, and how soon its tenants have it."""

import asyncio
import time

from support.cluster.client import TENANT_WEIGHT
from support.cluster.definitions import tenant_weight
from support.cluster.namespaces import new_namespace
from support.cluster.resources import by_secret, key_secret, says
from support.cluster.waiting import eventually
from support.cluster.whole import ask, new_key, tenant_with_key

from fairpool_gateway.sfq import Q

PROMISED = 1.0
"""Seconds from an edit of a weight to its use."""


class TestAWeight:
    async def test_is_in_force_within_the_time_that_is_promised(self, gateway, admin, kubectl, namespace, key, capsys):
        """Twenty edits in a row, each timed from when the server tells of it to when the gateway charges by it."""
        took = []

        async def when_the_server_has(weight):
            await eventually(admin, TENANT_WEIGHT, "search", namespace, lambda found: found["spec"]["weight"] == weight)
            return time.monotonic()

        async with gateway.as_tenant(key) as client:
            for weight in range(401, 421):
                change = f'{{"spec": {{"weight": {weight}}}}}'
                seen = asyncio.create_task(when_the_server_has(weight))
                await kubectl("patch", "tw", "search", "--type", "merge", "--patch", change)
                edit = await gateway.decides("weight", lambda line, weight=weight: line["weight"] == weight)
                took.append(edit["t"] - await seen)
                await ask(client)
                charge = await gateway.decides("dispatch", lambda line, edit=edit: line["seq"] > edit["seq"])
                assert charge["weight"] == weight
                assert charge["charge"] == -(-charge["cost"] * Q // weight)
        with capsys.disabled():
            milliseconds = sorted(round(1000 * each) for each in took)
            print(f"\n20 weight edits in force after (ms): {milliseconds}")
        assert max(took) < 3 * PROMISED


class TestAKey:
    async def test_is_rotated_without_a_refusal_and_useless_once_removed(self, gateway, admin, kubectl, namespace, key):
        new = new_key()
        await kubectl.apply(
            [
                key_secret(namespace, "search-2027", new),
                tenant_weight(namespace, apiKeys=[by_secret("search-key"), by_secret("search-2027", "new")]),
            ]
        )
        await gateway.accepts(new)
        await gateway.answers(key)
        await kubectl.apply(tenant_weight(namespace, apiKeys=[by_secret("search-2027", "new")]))
        assert await gateway.refuses(key, 401) == "unauthenticated"
        await gateway.answers(new)
        await kubectl("delete", "secret", "search-2027")
        assert await gateway.refuses(new, 401) == "unauthenticated"
        await eventually(admin, TENANT_WEIGHT, "search", namespace, says("Ready", "False", "SecretNotFound"))


class TestSuspended:
    async def test_a_pool_refuses_everybody_until_it_is_not(self, gateway, kubectl, key):
        await kubectl("patch", "fp", "llama", "--type", "merge", "--patch", '{"spec": {"suspend": true}}')
        assert await gateway.refuses(key, 503) == "pool_suspended"
        await kubectl("patch", "fp", "llama", "--type", "merge", "--patch", '{"spec": {"suspend": false}}')
        await gateway.accepts(key)

    async def test_a_tenant_is_refused_and_no_other(self, gateway, kubectl, namespace, key):
        other = new_key()
        await kubectl.apply(tenant_with_key(namespace, "other", other))
        await gateway.accepts(other)
        await kubectl("patch", "tw", "search", "--type", "merge", "--patch", '{"spec": {"suspend": true}}')
        assert await gateway.refuses(key, 403) == "tenant_suspended"
        await gateway.answers(other)


class TestConsent:
    async def test_that_is_withdrawn_cuts_off_the_tenants_of_other_namespaces(
        self, gateway, admin, kubectl, namespace, key
    ):
        foreign = new_key()
        consent = '{{"spec": {{"allowedTenants": {{"namespaces": {{"from": "{}"}}}}}}}}'
        async with new_namespace(admin, "guest") as guest:
            reference = {"name": "llama", "namespace": namespace}
            await kubectl.apply(tenant_with_key(guest, "visitor", foreign, poolRef=reference))
            await eventually(admin, TENANT_WEIGHT, "visitor", guest, says("Accepted", "False"))
            assert await gateway.refuses(foreign, 401) == "unauthenticated"
            await kubectl("patch", "fp", "llama", "--type", "merge", "--patch", consent.format("All"))
            await gateway.accepts(foreign)
            await gateway.decides("dispatch", lambda line: line["tenant"] == f"{guest}/visitor")
            await kubectl("patch", "fp", "llama", "--type", "merge", "--patch", consent.format("Same"))
            assert await gateway.refuses(foreign, 401) == "unauthenticated"
            await gateway.answers(key)
