"""The running program: its log in either form, a flood in it, and its spans up to the last."""

import asyncio
import json
import re
import signal

import httpx
import pytest
from support.config import key_of, pool_document
from support.engine import running_engine
from support.gateway_process import gateway_process
from support.tenant import CHAT, QUESTION
from support.traces import collector

KEY = {"authorization": f"Bearer {key_of('a')}"}


@pytest.fixture
async def config(tmp_path):
    async with running_engine() as engine:
        path = tmp_path / "pool.json"
        endpoints = [{"name": "e", "url": engine.url}]
        path.write_text(json.dumps(pool_document(models=["sim"], tenants=[{"name": "a"}], endpoints=endpoints)))
        yield path


async def ask(url, number=1, **headers):
    """Status and reason of so many requests."""
    async with httpx.AsyncClient(base_url=url, timeout=10, headers={**KEY, **headers}) as client:
        answers = await asyncio.gather(*(client.post(CHAT, json=QUESTION) for _ in range(number)))
    return {(answer.status_code, answer.headers.get("x-fairpool-reason")) for answer in answers}


async def test_in_text_every_line_says_when_how_bad_and_where(config):
    async with gateway_process(config) as gateway:
        assert await ask(gateway.url, authorization="Bearer wrong") == {(401, "unauthenticated")}
        gateway.signal(signal.SIGTERM)
        assert await gateway.ended() == 0
    assert all(re.match(r"\d{4}-\d\d-\d\dT[\d:.]+Z (INFO|WARNING) fairpool_gateway\.", line) for line in gateway.said)
    assert [line.rsplit(" ", 1)[1] for line in gateway.said if "refused" in line] == ["unauthenticated"]


async def test_in_json_a_flood_is_a_line_a_second_whose_counts_add_up(config):
    async with gateway_process(config, "--log-format", "json") as gateway:
        began = asyncio.get_running_loop().time()
        for _ in range(4):
            await ask(gateway.url, 50, authorization="Bearer wrong")
        took = asyncio.get_running_loop().time() - began
        gateway.signal(signal.SIGTERM)
        assert await gateway.ended() == 0
    lines = [json.loads(line) for line in gateway.said]
    assert lines[0]["message"].startswith("serving pool llama")
    refused = [line for line in lines if line.get("reason") == "unauthenticated"]
    assert sum(line.get("count", 1) for line in refused) == 200
    assert len(refused) <= took + 2


async def test_spans_are_sent_to_the_last_before_it_ends(config, monkeypatch):
    with collector() as received:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", received.url)
        async with gateway_process(config) as gateway:
            assert await ask(gateway.url, 3) == {(200, None)}
            gateway.signal(signal.SIGTERM)
            assert await gateway.ended() == 0
        assert len(received.spans) == 9
        assert {span.resource["service.name"] for span in received.spans} == {"fairpool-gateway"}


async def test_a_collector_that_is_away_harms_nobody(config, monkeypatch):
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "1")
    async with gateway_process(config) as gateway:
        assert await ask(gateway.url, 3) == {(200, None)}
        gateway.signal(signal.SIGTERM)
        assert await gateway.ended() == 0
