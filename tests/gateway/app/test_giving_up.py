"""Engines that are told to stop end their answers early, with a status of 200 and `finish_reason` abort."""

import asyncio
import contextlib
import json
import logging

import pytest
from support.config import key_of
from support.engine import running_engine
from support.gateway import running_gateway
from support.scripted_endpoint import until
from support.tenant import QUESTION, pool_over, request_bytes, tenant, wire

from fairpool_lab.engine.batching import Limits

LONG = {**QUESTION, "max_tokens": 10_000, "extra_body": {"ignore_eos": True}}
SLOW = Limits(step_base=0.01)


@contextlib.asynccontextmanager
async def serving(*, slots=2):
    """Two engines behind a gateway; the first is chosen first."""
    async with running_engine(limits=SLOW) as engine, running_engine() as other:
        config = pool_over(engine.url, other.url, slots={"perEndpoint": slots})
        async with running_gateway(config) as gateway:
            yield engine, other, gateway


async def ask(gateway, name, **fields):
    """The last that a tenant is told: its answer, or the last choice and the usage of its stream."""
    async with tenant(gateway, name) as client:
        answer = await client.chat.completions.create(**{**LONG, **fields})
        if not fields.get("stream"):
            return answer.choices[0].finish_reason, answer.usage
        events = [event async for event in answer]
        return [event for event in events if event.choices][-1].choices[0].finish_reason, events[-1].usage


def is_out(gateway):
    return [endpoint.is_out for endpoint in gateway.dispatcher.endpoints]


async def test_a_streams_bytes_pass_as_they_are():
    async with serving() as (engine, _, gateway), wire(gateway) as line:
        body = {**QUESTION, "max_tokens": 10_000, "ignore_eos": True, "stream": True}
        await line.send(
            request_bytes(json.dumps(body).encode(), b"Content-Type: application/json", b"Connection: close")
        )
        await line.until(b"data: {")
        engine.runner.abort_all()
        rest = await line.rest()
    assert b'"finish_reason":"abort"' in rest
    assert rest.endswith(b"data: [DONE]\n\n\r\n0\r\n\r\n")
    assert b"error" not in rest
    assert gateway.outcomes == {"answered": 1}


async def test_an_answer_that_is_no_stream_passes_too_and_is_not_repeated():
    async with serving() as (engine, other, gateway):
        asking = asyncio.create_task(ask(gateway, "a"))
        await engine.until(lambda e: e.running == 1)
        engine.runner.abort_all()
        finish_reason, usage = await asking
        assert finish_reason == "abort"
        assert usage.completion_tokens < 10_000
        assert other.tokens() == {}


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "unary"])
async def test_it_teaches_nothing_though_it_tells_what_it_used(stream):
    more = {"stream": True, "stream_options": {"include_usage": True}} if stream else {}
    async with serving() as (engine, _, gateway):
        asking = asyncio.create_task(ask(gateway, "a", **more))
        await engine.until(lambda e: e.running == 1)
        engine.runner.abort_all()
        _, usage = await asking
        assert usage.prompt_tokens == 9
        await until(lambda: gateway.in_flight == 0)
        counts = gateway.dispatcher.counts
        assert counts.charged > 0
        assert (counts.used, counts.input, counts.output) == (0, 0, 0)
        assert not gateway.dispatcher.estimator._tenants


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "unary"])
@pytest.mark.parametrize(("names", "out"), [("ab", True), ("aa", False), ("aba", True)])
async def test_two_tenants_whose_answers_it_gave_up_take_it_out(stream, names, out, caplog):
    async with serving(slots=3) as (engine, other, gateway):
        gateway.gateway.apply(pool_over(engine.url, slots={"perEndpoint": 3}))
        asking = [asyncio.create_task(ask(gateway, name, stream=stream)) for name in names]
        await engine.until(lambda e: e.running == len(names))
        gateway.gateway.apply(pool_over(engine.url, other.url, slots={"perEndpoint": 3}))
        engine.runner.abort_all()
        assert [finish_reason for finish_reason, _ in await asyncio.gather(*asking)] == ["abort"] * len(names)
        await until(lambda: gateway.in_flight == 0)
        assert is_out(gateway) == [out, False]
        if out:
            assert (await ask(gateway, "c", max_tokens=3))[0] == "length"
            assert sum(counted["requests"] for counted in other.tokens().values()) == 1
    told = [record for record in caplog.records if "gave up its answer" in record.getMessage()]
    assert {record.levelno for record in told} == {logging.WARNING}
    assert len(told) == len(names)
    assert not any(key_of(name) in record.getMessage() for record in told for name in names)
