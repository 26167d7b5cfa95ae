"""What happens to those who say how the pool is, while tenants ask without a pause; and what these say."""

import asyncio
import os
import signal
import time

import openai
from support.cluster.client import DEPLOYMENT, FAIR_POOL, POD, ROLE, ROLE_BINDING, SECRET, SERVICE, SERVICE_ACCOUNT
from support.cluster.resources import by_secret, key_secret
from support.cluster.waiting import eventually_all, gone
from support.cluster.whole import new_key
from support.node.asking import PATIENCE, until
from support.node.installation import NAMESPACE, OPERATOR, rolled_out
from support.node.load import CLIENTS, client_of, load_on, question
from support.node.pools import GATEWAY, OWNED, POOL

NOBODY_THERE = {"ConnectError after 0 events", "ConnectTimeout after 0 events"}
"""How a request is lost that was never sent, for there was no connection."""

AWAY = 30.0
"""Seconds for which the API server is away."""


async def is_good(url, key):
    """Whether the gateway knows a key."""
    async with client_of(url, key) as client:
        try:
            await client.chat.completions.create(**question(4))
        except openai.AuthenticationError:
            return False
    return True


async def is_useless(url, key):
    """Whether it does not."""
    return not await is_good(url, key)


class TestTheOperator:
    async def test_that_is_killed_and_comes_back_disturbs_nobody_and_catches_up(
        self, serving, node, admin, kubectl, tell
    ):
        async with load_on(await serving.url(), serving.keys.values()) as load:
            await load.answers(20)
            for pod in await admin.list(POD, NAMESPACE, labelSelector=f"app.kubernetes.io/name={OPERATOR}"):
                os.kill(node.process(pod), signal.SIGKILL)
            began = time.monotonic()
            await serving.apply(serving.tenant("search", 7))
            await serving.counts_by(search=7)
            tell(f"operator killed, an edit in force {time.monotonic() - began:.1f} s later")
            await load.answers(20)
        await rolled_out(kubectl)
        tell(f"the operator killed: {load.account}")
        assert load.account.lost == []
        assert not load.account.refused


class TestTheApiServer:
    async def test_that_is_away_is_missed_by_no_tenant_and_heard_again(self, serving, node, tell):
        async with load_on(await serving.url(), serving.keys.values()) as load:
            await load.answers(20)
            node.control_plane.apiserver.kill()
            await asyncio.sleep(AWAY)
            await load.answers(40)
            await node.control_plane.resume()
            began = time.monotonic()
            await serving.apply(serving.tenant("search", 9))
            await serving.counts_by(search=9)
            tell(f"API server back, an edit in force {time.monotonic() - began:.1f} s later")
            await serving.scale(3)
            await serving.reports(endpointsReady=3)
            tell(f"and one more engine, for which all of Kubernetes is needed, {time.monotonic() - began:.1f} s later")
            await load.answers(20)
        tell(f"the API server away for {AWAY:g} s: {load.account}")
        assert load.account.lost == []
        assert not load.account.refused


class TestSuspended:
    async def test_a_tenant_is_told_so_and_no_other_notices(self, serving, tell):
        url = await serving.url()
        async with (
            load_on(url, [serving.keys["search"]], clients=3) as load,
            load_on(url, [serving.keys["batch"]], clients=3) as others,
        ):
            await load.answers(10)
            await serving.apply(serving.tenant("search", 300, suspend=True))
            await load.until(lambda account: account.refused.total() > 5)
            await serving.apply(serving.tenant("search", 300, suspend=False))
            await load.answers(20)
        tell(f"a tenant suspended and back: {load.account}")
        assert (load.account.lost, others.account.lost) == ([], [])
        assert set(load.account.refused) == {"403 tenant_suspended"}
        assert not others.account.refused

    async def test_a_pool_tells_everybody_so_until_it_is_not(self, serving, kubectl, tell):
        patch = ("patch", "fairpool", POOL, "-n", serving.namespace, "--type=merge", "--patch")
        async with load_on(await serving.url(), serving.keys.values()) as load:
            await load.answers(20)
            await kubectl(*patch, '{"spec": {"suspend": true}}')
            await load.until(lambda account: account.refused.total() > 5)
            await kubectl(*patch, '{"spec": {"suspend": false}}')
            await load.answers(20)
        tell(f"the pool suspended and back: {load.account}")
        assert load.account.lost == []
        assert set(load.account.refused) == {"503 pool_suspended"}


class TestKeys:
    async def test_are_rotated_and_nobody_is_refused(self, serving, tell):
        url, old, new = await serving.url(), serving.keys["search"], new_key()
        tenant = serving.tenant("search", 300)[1]
        (first,) = tenant["spec"]["apiKeys"]
        second = by_secret("search-next", "next")
        both = {**tenant, "spec": {**tenant["spec"], "apiKeys": [first, second]}}
        without = {**tenant, "spec": {**tenant["spec"], "apiKeys": [second]}}
        async with load_on(url, [old], clients=3) as before:
            await before.answers(10)
            await serving.apply([key_secret(serving.namespace, "search-next", new), both])
            await until(lambda: is_good(url, new))
            await before.answers(10)
        async with load_on(url, [new], clients=3) as after:
            await after.answers(10)
            await serving.apply([without])
            await until(lambda: is_useless(url, old))
            await after.answers(10)
        tell(f"keys rotated: {before.account}; then {after.account}")
        assert (before.account.lost, after.account.lost) == ([], [])
        assert not before.account.refused + after.account.refused


class TestThePool:
    async def test_that_is_deleted_finishes_what_was_sent_and_then_everything_is_gone(
        self, serving, kubectl, admin, tell
    ):
        """Its Service goes at once, so later requests find nobody; those find their answers that had found it."""
        url = await serving.url()
        async with load_on(url, serving.keys.values()) as load, client_of(url, serving.keys["search"]) as client:
            await load.answers(20)
            stream = await client.chat.completions.create(**question(600), stream=True)
            events = aiter(stream)
            await anext(events)
            deleted = time.monotonic()
            await kubectl("delete", "fairpool", POOL, "-n", serving.namespace)
            for kind in (SERVICE_ACCOUNT, ROLE, ROLE_BINDING, SERVICE, DEPLOYMENT):
                await gone(admin, kind, OWNED, serving.namespace, PATIENCE)
            rest = [event async for event in events]
            assert rest[-1].choices[0].finish_reason == "length"
            await load.until(lambda account: len(account.lost) >= len(serving.keys) * CLIENTS)
        tell(f"the pool deleted: {load.account}")
        before = [end for end in load.account.ends if end.began < deleted]
        assert before
        assert not [end for end in before if end.reason or end.lost]
        assert set(load.account.refused) <= {"503 draining"}
        assert {lost.partition(":")[0] for lost in load.account.lost} <= NOBODY_THERE
        await gone(admin, SECRET, f"{OWNED}-config", serving.namespace, PATIENCE)
        await gone(admin, FAIR_POOL, POOL, serving.namespace)
        nothing = lambda found: not found  # noqa: E731 - a word
        await eventually_all(admin, POD, serving.namespace, nothing, PATIENCE, labelSelector=GATEWAY)
