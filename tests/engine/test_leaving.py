"""A tenant that leaves ends the engine's work, wherever its request is; what the engine stays busy with shows it.

llama.cpp's server notices that a stream's client left when it sends the next event, and of an answer that is no stream
once it has had nothing to do with it for a second; so these tests read its log, which does not wake it.
"""

import asyncio
import json

import pytest
from support.gateway import running_gateway
from support.llama.pool import CHAT, pool_over_llama
from support.scripted_endpoint import until
from support.tenant import request_bytes, tenant, wire

LONG = {**CHAT, "max_tokens": 15_000}
"""A minute's work for the slow model."""

STARTS = r"processing task"
ENDED = r"stop processing: n_tokens = (\d+)"


@pytest.fixture
async def gateway(slow_engine):
    async with running_gateway(pool_over_llama(slow_engine.url)) as gateway:
        yield gateway
        await until(lambda: gateway.in_flight == 0)
        assert gateway.dispatcher.admission.waiting == 0
    assert await slow_engine.running() == 0


def asked(**fields):
    return request_bytes(json.dumps({**LONG, **fields}).encode(), b"Content-Type: application/json")


async def works_no_longer(engine, before, requests=1):
    """Wait until the engine has ended so many requests more than before, all of them early."""
    await engine.says(ENDED, times=before + requests)
    assert all(int(tokens) < 10_000 for tokens in engine.said(ENDED)[before:])


class TestWhileTheEngineWorks:
    @pytest.mark.parametrize("stream", [True, False], ids=["stream", "unary"])
    async def test_before_the_first_byte(self, gateway, slow_engine, stream):
        """It reads a prompt for seconds, and has not answered yet."""
        before, began = len(slow_engine.said(ENDED)), len(slow_engine.said(STARTS))
        prompt = [{"role": "user", "content": f"{stream} " + "qz" * 4000}]
        async with wire(gateway) as line:
            await line.send(asked(stream=stream, messages=prompt))
            await slow_engine.says(STARTS, times=began + 1)
            line.leave()
            await until(lambda: gateway.in_flight == 0)
            await works_no_longer(slow_engine, before)

    async def test_in_the_middle_of_a_stream(self, gateway, slow_engine):
        before = len(slow_engine.said(ENDED))
        async with wire(gateway) as line:
            await line.send(asked(stream=True))
            await line.until(b'"content":"')
            line.leave()
            await until(lambda: gateway.in_flight == 0)
            await works_no_longer(slow_engine, before)

    async def test_in_the_middle_of_an_answer_that_is_no_stream(self, gateway, slow_engine):
        before, began = len(slow_engine.said(ENDED)), len(slow_engine.said(STARTS))
        async with wire(gateway) as line:
            await line.send(asked())
            await slow_engine.says(STARTS, times=began + 1)
            line.leave()
            await until(lambda: gateway.in_flight == 0)
            await works_no_longer(slow_engine, before)

    async def test_with_the_official_client_by_closing_its_stream(self, gateway, slow_engine):
        before = len(slow_engine.said(ENDED))
        async with tenant(gateway) as client:
            stream = await client.chat.completions.create(**LONG, stream=True)
            await anext(aiter(stream))
            await stream.close()
            await works_no_longer(slow_engine, before)

    async def test_with_the_official_client_by_a_time_out(self, gateway, slow_engine):
        before = len(slow_engine.said(ENDED))
        async with tenant(gateway) as client:
            asking = asyncio.create_task(client.chat.completions.create(**LONG))
            await until(lambda: gateway.in_flight == 1)
            asking.cancel()
            await asyncio.wait([asking])
            await until(lambda: gateway.in_flight == 0)
        await works_no_longer(slow_engine, before)


async def test_the_next_request_gets_the_slot_and_the_engines_own(gateway, slow_engine):
    before = len(slow_engine.said(ENDED))
    async with wire(gateway) as one, wire(gateway) as other, tenant(gateway, "b") as client:
        for line in (one, other):
            await line.send(asked(stream=True))
            await line.until(b'"content":"')
        waiting = asyncio.create_task(client.chat.completions.create(**CHAT))
        await until(lambda: gateway.dispatcher.admission.waiting == 1)
        one.leave()
        assert (await waiting).usage.completion_tokens == 6
        other.leave()
        await until(lambda: gateway.in_flight == 0)
    await slow_engine.says(ENDED, times=before + 3)


async def test_one_that_waits_here_never_reaches_the_engine(gateway, slow_engine):
    before, began = len(slow_engine.said(ENDED)), len(slow_engine.said(STARTS))
    async with wire(gateway) as one, wire(gateway) as other, wire(gateway) as waiting:
        for line in (one, other):
            await line.send(asked(stream=True))
            await line.until(b'"content":"')
        await waiting.send(asked(stream=True))
        await until(lambda: gateway.dispatcher.admission.waiting == 1)
        waiting.leave()
        await until(lambda: gateway.dispatcher.admission.waiting == 0)
        for line in (one, other):
            line.leave()
        await works_no_longer(slow_engine, before, requests=2)
    assert len(slow_engine.said(STARTS)) == began + 2
