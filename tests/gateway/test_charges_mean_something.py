"""What is charged is what engines do: equal weights get equal tokens, counted by the engine, whatever is sent.

Two tenants wait all the time; one sends prompts and asks for answers ten times as long as the other's.
"""

import asyncio
import contextlib

import httpx
import pytest
from support.config import key_of, pool_config
from support.engine import FAST, running_engine
from support.gateway import running_gateway

from fairpool_gateway.cost import Estimator

SLOTS = 4
WAITING = 12
TOKENS = {"small": 20, "large": 200}
"""Of an answer; the prompts have five times as many."""


def shapes(tenant):
    tokens = TOKENS[tenant]
    return {
        "model": "sim",
        "messages": [{"role": "user", "content": "fair " * (4 * tokens)}],
        "max_tokens": tokens,
        "ignore_eos": True,
        "user": tenant,
    }


async def send_for_ever(gateway, tenant):
    async with httpx.AsyncClient(base_url=gateway.url, timeout=60) as client:
        while True:
            headers = {"authorization": f"Bearer {key_of(tenant)}"}
            answer = await client.post("/v1/chat/completions", json=shapes(tenant), headers=headers)
            answer.raise_for_status()


def counted(engine, tenant):
    """What the engine has computed for a tenant, weighed as the pool weighs it."""
    tokens = engine.tokens().get(tenant, {"prompt": 0, "generation": 0})
    return tokens["prompt"] + 2 * tokens["generation"]


async def check_equal_tokens():
    """Raises AssertionError if the tokens that the engine counted differ by more than a tenth."""
    config = {"models": ["sim"], "tenants": [{"name": tenant} for tenant in TOKENS], "slots": {"perEndpoint": SLOTS}}
    async with running_engine(limits=FAST) as engine:
        config["endpoints"] = [{"name": "e", "url": engine.url}]
        async with running_gateway(pool_config(**config)) as gateway, asyncio.timeout(60):
            load = [asyncio.create_task(send_for_ever(gateway, tenant)) for tenant in TOKENS for _ in range(WAITING)]
            try:
                warm = await reach(engine, 30_000)
                done = await reach(engine, 140_000)
            finally:
                for task in load:
                    task.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await asyncio.gather(*load, return_exceptions=True)
    small, large = (done[tenant] - warm[tenant] for tenant in TOKENS)
    print(f"tokens counted by the engine: {small} and {large}")
    assert abs(small - large) <= 0.1 * max(small, large), f"{small} against {large} tokens"


async def reach(engine, total):
    """Wait until the engine has counted so much; returns what it counted for each tenant."""
    await engine.until(lambda now: sum(counted(now, tenant) for tenant in TOKENS) >= total)
    return {tenant: counted(engine, tenant) for tenant in TOKENS}


async def test_engines_work_equally_for_tenants_of_equal_weight():
    await check_equal_tokens()


async def test_a_constant_cost_is_caught(monkeypatch):
    monkeypatch.setattr(Estimator, "estimate", lambda self, tenant, shape: 1)
    with pytest.raises(AssertionError, match="against"):
        await check_equal_tokens()
