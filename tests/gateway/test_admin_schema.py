"""The admin port answers as its OpenAPI schema says, whatever it is asked: schemathesis reads it, and asks."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from contextlib import AsyncExitStack
from typing import Any

import httpx
import pytest
import schemathesis
from hypothesis import given, settings
from hypothesis import strategies as st
from schemathesis import GenerationMode
from schemathesis.core.failures import FailureGroup
from support.config import digest_of, key_of, pool_document
from support.engine import engine_process
from support.gateway_process import gateway_process
from support.tenant import CHAT, QUESTION

PATHS = ["/debug/keys", "/debug/pool", "/debug/requests", "/debug/tenants", "/healthz", "/metrics", "/readyz"]


@pytest.fixture(scope="module")
def admin(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The admin port of a gateway of which there is something to tell."""
    with asyncio.Runner() as runner:
        both = AsyncExitStack()
        try:
            yield runner.run(_with_something_to_tell(both, tmp_path_factory.mktemp("pool")))
        finally:
            runner.run(both.aclose())


async def _with_something_to_tell(both: AsyncExitStack, directory: Any) -> str:
    engine = await both.enter_async_context(engine_process("--model", "sim"))
    keys = [{"name": "now", "digest": digest_of(key_of("a")), "notAfter": "2100-01-01T00:00:00Z"}]
    config = directory / "pool.json"
    document = pool_document(
        models=["sim"],
        endpoints=[
            {"name": "well", "url": engine.url},
            {"name": "drains", "url": "http://127.0.0.1:1", "drain": True},
            {"name": "dead", "url": "http://127.0.0.1:2"},
        ],
        tenants=[{"name": "a", "weight": 300, "keys": keys}, {"name": "b"}],
        probe={"interval": "1h"},
    )
    config.write_text(json.dumps(document))
    gateway = await both.enter_async_context(gateway_process(config))
    async with httpx.AsyncClient(base_url=gateway.url) as client:
        for headers in ({"authorization": f"Bearer {key_of('a')}"}, {}):
            await client.post(CHAT, json=QUESTION, headers=headers)
    return gateway.admin_url


@pytest.fixture(scope="module")
def admin_schema(admin: str):
    return schemathesis.openapi.from_url(f"{admin}/openapi.json")


@pytest.mark.parametrize("path", PATHS)
def test_every_answer_is_as_the_schema_says(admin_schema: Any, path: str):
    operation = admin_schema[path]["GET"]

    @settings(max_examples=20, deadline=None)
    @given(case=st.one_of(operation.as_strategy(), operation.as_strategy(generation_mode=GenerationMode.NEGATIVE)))
    def check(case: schemathesis.Case) -> None:
        case.call_and_validate()

    check()


def test_the_schema_has_every_path_and_a_shape_for_every_answer(admin: str):
    document = httpx.get(f"{admin}/openapi.json").json()
    assert sorted(document["paths"]) == PATHS
    for path, operations in document["paths"].items():
        (content,) = operations["get"]["responses"]["200"]["content"].values()
        assert content["schema"], path


@pytest.mark.parametrize(
    ("path", "view", "field"),
    [("/debug/pool", "PoolView", "v"), ("/debug/requests", "DispatchView", "cost"), ("/debug/keys", "KeyView", "key")],
)
def test_an_answer_that_is_otherwise_is_caught(admin: str, path: str, view: str, field: str):
    document = httpx.get(f"{admin}/openapi.json").json()
    document["components"]["schemas"][view]["properties"][field] = {"type": "boolean"}
    broken = schemathesis.openapi.from_dict(document)
    case = broken[path]["GET"].Case()
    with pytest.raises(FailureGroup, match=field):
        case.call_and_validate(base_url=admin)
