"""Two tenants that both wait share a real engine by their weights, in the tokens that the engine counted."""

import asyncio
from collections import Counter
from itertools import cycle, islice

import pytest
from support.gateway import running_gateway
from support.llama.pool import pool_over_llama
from support.llama.server import MODEL
from support.scripted_endpoint import PATIENCE
from support.tenant import tenant

from fairpool_lab.policies.arrival_order import ArrivalOrder

PROMPTS = {"a": "short", "b": "a prompt that is longer " * 3}
LENGTHS = {"a": [10, 45, 20, 35, 15], "b": [60, 140, 80, 120, 100]}
"""What each tenant asks for, again and again: its prompt, with answers of these lengths."""

REQUESTS = {"a": 200, "b": 90}
SLOTS = 2

PATIENT = {"timeout": 30 * PATIENCE}


async def share_of_a(engine, weights, **options):
    """Its share of the tokens that the engine counted, output twice, for as long as both had requests waiting.

    All of them wait before the first is served, so it does not matter how fast the tenants are.
    """
    tokens, answered = Counter(), Counter()
    first_has_none_waiting = asyncio.Event()

    def pool(*, drain):
        tenants = [{"name": name, "weight": weight} for name, weight in weights.items()]
        config = pool_over_llama(engine.url, tenants=tenants, slots={"perEndpoint": SLOTS}, queue={"timeout": "1h"})
        (endpoint,) = config.endpoints
        return config.model_copy(update={"endpoints": (endpoint.model_copy(update={"drain": drain}),)})

    async def ask(name, client, length):
        answer = await client.completions.create(model=MODEL, prompt=PROMPTS[name], max_tokens=length)
        if not first_has_none_waiting.is_set():
            tokens[name] += answer.usage.prompt_tokens + 2 * answer.usage.completion_tokens
            answered[name] += 1
            if answered[name] == REQUESTS[name] - SLOTS:
                first_has_none_waiting.set()

    async with (
        running_gateway(pool(drain=False), **options) as gateway,
        tenant(gateway, "a", **PATIENT) as one,
        tenant(gateway, "b", **PATIENT) as other,
    ):
        clients = {"a": one, "b": other}
        for name, client in clients.items():
            for length in LENGTHS[name]:
                await ask(name, client, length)
        tokens.clear()
        answered.clear()
        gateway.gateway.apply(pool(drain=True))
        tasks = [
            asyncio.create_task(ask(name, client, length))
            for name, client in clients.items()
            for length in islice(cycle(LENGTHS[name]), REQUESTS[name])
        ]
        async with asyncio.timeout(10 * PATIENCE):
            while gateway.dispatcher.admission.waiting < len(tasks):  # noqa: ASYNC110 - nobody is told of it
                await asyncio.sleep(0.01)
        gateway.gateway.apply(pool(drain=False))
        async with asyncio.timeout(30 * PATIENCE):
            await first_has_none_waiting.wait()
        for task in tasks:
            task.cancel()
        ends = await asyncio.gather(*tasks, return_exceptions=True)
        assert {type(end) for end in ends} <= {type(None), asyncio.CancelledError}
        return tokens["a"] / tokens.total()


@pytest.mark.parametrize(("a", "b"), [(300, 100), (100, 100), (100, 300)])
async def test_each_gets_its_part_though_one_asks_for_answers_four_times_as_long(engine, a, b):
    assert await share_of_a(engine, {"a": a, "b": b}) == pytest.approx(a / (a + b), abs=0.05)


async def test_in_the_order_of_arrival_it_is_whoever_came_first(engine):
    assert await share_of_a(engine, {"a": 100, "b": 300}, ordering=ArrivalOrder) > 0.9
