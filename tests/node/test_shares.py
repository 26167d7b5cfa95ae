"""What tenants get of the engines while all of them wait, counted by the engines, and how soon an edit changes it."""

import asyncio
import time
from contextlib import AsyncExitStack
from dataclasses import replace
from functools import partial
from itertools import chain, cycle, islice, starmap

import httpx
import pytest
from support.cluster.client import TENANT_WEIGHT
from support.cluster.waiting import eventually
from support.node.asking import until
from support.node.engines import tokens
from support.node.load import Load, client_of, load_on, question
from support.node.pools import ADMIN_PORT, STEPS

PROMISED = 1.0
"""Seconds from an edit of a weight to its use."""

ANSWERS = {"search": ([8, 24, 16, 32], 5), "batch": ([60, 30, 90, 45], 30), "chat": ([20, 35, 10, 25], 20)}
"""What each tenant asks for in turn: answers of these lengths, to a prompt of so many words."""

ROUNDS = [
    ({"search": 100, "batch": 300, "chat": 100}, {"search": 190, "batch": 190, "chat": 130}),
    ({"search": 100, "batch": 100, "chat": 100}, {"search": 360, "batch": 130, "chat": 220}),
]
"""Weights, and how many requests of each tenant wait before the first is served."""

LEARNING = 12
"""Requests from which the gateway learns what a tenant's cost, before anything is counted."""


def requests(name):
    """A tenant's requests without end, under whose name the engines count them."""
    lengths, words = ANSWERS[name]
    return cycle([question(length, words, user=name) for length in lengths])


async def costs(pool):
    """What the engines have counted of each tenant so far, in tokens of cost."""
    counted = await tokens(pool.admin, pool.namespace)
    return {name: counted[name]["prompt"] + 2 * counted[name]["generation"] for name in ANSWERS}


async def waiting(pool):
    """How many requests of each tenant wait."""
    shown = {each["tenant"]: each["waiting"] for each in (await pool.shown("debug/pool"))["tenants"]}
    return {name: shown.get(name, 0) for name in ANSWERS}


async def drain(pool, *, all_engines):
    """Have the engines get nothing more, or get requests again."""
    label = f"fairpool.dev/drain={'true' if all_engines else 'false'}"
    await pool.kubectl("label", "pods", "-l", "app=engine", "--overwrite", label, "-n", pool.namespace)


async def shares_while_all_wait(pool, clients, counts):
    """Each tenant's part of what the engines counted, from when all requests wait until one tenant has none waiting."""
    load = Load("")
    await drain(pool, all_engines=True)
    await pool.reports(endpointsReady=0)
    before = await costs(pool)
    sent = [
        asyncio.create_task(load.once(clients[name], False, body))
        for name, count in counts.items()
        for body in islice(requests(name), count)
    ]

    async def all_wait():
        return await waiting(pool) == counts

    await until(all_wait)
    await drain(pool, all_engines=False)
    after = before
    async with asyncio.timeout(120):
        while all((await waiting(pool)).values()):
            after = await costs(pool)
    await asyncio.gather(*sent)
    assert (load.account.answered, load.account.sent) == (sum(counts.values()),) * 2
    spent = {name: after[name] - before[name] for name in ANSWERS}
    return {name: cost / sum(spent.values()) for name, cost in spent.items()}


class TestShares:
    async def test_follow_the_weights_though_requests_are_of_unequal_size_and_an_edit_changes_them(self, pool, tell):
        """All requests wait before the first is served, so it does not matter how fast the tenants are."""
        pool = replace(pool, weights=ROUNDS[0][0], spec={"queue": {"timeout": "10m"}}, keys={})
        await pool.apply(pool.documents(2, *STEPS, "--speed", "2"))
        await pool.reports(endpointsReady=2)
        url = await pool.url()
        await pool.available()
        async with AsyncExitStack() as stack:
            clients = {name: await stack.enter_async_context(client_of(url, key)) for name, key in pool.keys.items()}
            for name, client in clients.items():
                for body in islice(requests(name), LEARNING):
                    await client.chat.completions.create(**body)
            for weights, counts in ROUNDS:
                await pool.apply(list(chain.from_iterable(starmap(pool.tenant, weights.items()))))
                found = await shares_while_all_wait(pool, clients, counts)
                tell(f"shares at weights {weights}: {[round(share, 3) for share in found.values()]}")
                entitled = {name: weight / sum(weights.values()) for name, weight in weights.items()}
                assert found == {name: pytest.approx(share, rel=0.05) for name, share in entitled.items()}


class TestAWeight:
    async def test_that_is_applied_is_in_force_within_the_time_that_is_promised(self, serving, admin, tell):
        """Twenty edits under load, each timed from when the server has it to when the gateway counts by it."""
        took = []
        (pod,) = await serving.gateways()
        shows = f"http://{pod['status']['podIP']}:{ADMIN_PORT}/debug/tenants"

        async def when_the_server_has(weight):
            await eventually(
                admin, TENANT_WEIGHT, "search", serving.namespace, lambda tenant: tenant["spec"]["weight"] == weight
            )
            return time.monotonic()

        async with load_on(await serving.url(), serving.keys.values()) as load, httpx.AsyncClient() as http:

            async def in_force(weight):
                return weight in {each["weight"] for each in (await http.get(shows)).json()["tenants"]}

            for weight in range(401, 421):
                seen = asyncio.create_task(when_the_server_has(weight))
                applying = asyncio.create_task(serving.apply(serving.tenant("search", weight)))
                await until(partial(in_force, weight))
                took.append(time.monotonic() - await seen)
                await applying
        tell(f"20 weight edits in force after (ms): {sorted(round(1000 * each) for each in took)}")
        tell(str(load.account))
        assert max(took) < 3 * PROMISED
        assert load.account.lost == []
        assert not load.account.refused
