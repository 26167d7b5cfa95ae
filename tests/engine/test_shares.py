"""Two tenants that both wait share a real engine by their weights, in the tokens that the engine counted."""

import asyncio
from collections import Counter

import pytest
from support.gateway import running_gateway
from support.llama.pool import pool_over_llama
from support.llama.server import MODEL
from support.tenant import tenant

MEASURED = 20_000
"""Tokens of the cost model, output counted twice, over which shares are compared."""

AT_ONCE = 6
"""Requests that each tenant has here at any time, of which the engine takes two in all."""

ASKED = {"a": ("short", [10, 45, 20, 35, 15]), "b": ("a prompt that is longer " * 3, [60, 140, 80, 120, 100])}
"""What each tenant asks for, again and again: a prompt, and answers of these lengths."""

PATIENT = {"timeout": 120}


async def received(engine, weights):
    """The tokens that the engine counted for each tenant while both had requests waiting."""
    tokens = Counter()
    enough = asyncio.Event()

    async def ask(name, client, length):
        answer = await client.completions.create(model=MODEL, prompt=ASKED[name][0], max_tokens=length)
        return answer.usage.prompt_tokens + 2 * answer.usage.completion_tokens

    async def keep_asking(name, client, number):
        while True:
            lengths = ASKED[name][1]
            tokens[name] += await ask(name, client, lengths[number % len(lengths)])
            number += 1
            if tokens.total() >= MEASURED:
                enough.set()

    tenants = [{"name": name, "weight": weight} for name, weight in weights.items()]
    async with (
        running_gateway(pool_over_llama(engine.url, tenants=tenants)) as gateway,
        tenant(gateway, "a", **PATIENT) as one,
        tenant(gateway, "b", **PATIENT) as other,
    ):
        clients = {"a": one, "b": other}
        for name, client in clients.items():
            for length in ASKED[name][1]:
                await ask(name, client, length)
        tasks = [
            asyncio.create_task(keep_asking(name, client, number))
            for number in range(AT_ONCE)
            for name, client in clients.items()
        ]
        ended = asyncio.create_task(enough.wait())
        done, _ = await asyncio.wait([ended, *tasks], return_when=asyncio.FIRST_COMPLETED)
        measured = dict(tokens)
        for task in (ended, *tasks):
            task.cancel()
        await asyncio.wait([ended, *tasks])
        assert done == {ended}, [task.exception() for task in done]
        return measured


@pytest.mark.parametrize(("a", "b"), [(300, 100), (100, 100), (100, 300)])
async def test_each_gets_its_part_though_one_asks_for_answers_four_times_as_long(engine, a, b):
    tokens = await received(engine, {"a": a, "b": b})
    assert tokens["a"] / sum(tokens.values()) == pytest.approx(a / (a + b), abs=0.05)
