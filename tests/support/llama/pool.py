"""A pool over llama.cpp's server, its tenants, and what they ask."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from typing import Any

import anthropic
from support.config import key_of, pool_config
from support.gateway import RunningGateway
from support.llama.server import MODEL
from support.scripted_endpoint import PATIENCE

from fairpool_gateway.config import PoolConfig

HELLO: list[Any] = [{"role": "user", "content": "hello world"}]
CHAT: dict[str, Any] = {"model": MODEL, "messages": HELLO, "max_tokens": 6}


def pool_over_llama(*urls: str, **fields: Any) -> PoolConfig:
    """A pool of tenants `a` and `b` over these servers, with as many slots on each as it has of its own."""
    fields.setdefault("tenants", [{"name": name} for name in "ab"])
    fields.setdefault("slots", {"perEndpoint": 2})
    endpoints = [{"name": f"llama-{number}", "url": url} for number, url in enumerate(urls)]
    return pool_config(models=[MODEL], endpoints=endpoints, **fields)


@contextlib.asynccontextmanager
async def anthropic_tenant(gateway: RunningGateway, name: str = "a") -> AsyncIterator[anthropic.AsyncAnthropic]:
    """Anthropic's client as a tenant uses it, but that it never retries."""
    async with anthropic.AsyncAnthropic(
        base_url=gateway.url, api_key=key_of(name), max_retries=0, timeout=PATIENCE
    ) as client:
        yield client
