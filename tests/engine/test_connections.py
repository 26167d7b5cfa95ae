"""What a real engine does with its connections, its key and its end."""

import asyncio
import json

import anthropic
import httpx
import openai
import pytest
from support.config import key_of
from support.gateway import running_gateway
from support.llama.pool import CHAT, anthropic_tenant, pool_over_llama
from support.llama.server import llama_server
from support.scripted_endpoint import until
from support.tenant import request_bytes, tenant, wire

SHORT = {**CHAT, "max_tokens": 1}
LONG = {**CHAT, "max_tokens": 15_000}


@pytest.fixture
def own_engine(binary, slow_model, directory):
    """A server that a test may end."""
    with llama_server(slow_model, directory) as server:
        yield server


async def test_more_requests_than_one_connection_may_carry(gateway, client):
    """This engine closes a connection after 100."""
    for _ in range(130):
        answer = await client.chat.completions.create(**SHORT)
        assert answer.usage.completion_tokens == 1
    assert gateway.outcomes == {"answered": 130}
    assert gateway.dispatcher.counts.retried == 0


async def test_a_refusal_that_closes_the_connection_costs_the_next_request_nothing(gateway, client):
    for _ in range(5):
        with pytest.raises(openai.BadRequestError, match="Value must be between"):
            await client.chat.completions.create(**{**CHAT, "max_tokens": -5})
        assert (await client.chat.completions.create(**SHORT)).usage.completion_tokens == 1
    assert gateway.dispatcher.counts.retried == 0


async def test_the_engines_own_refusals_are_what_clients_make_of_them(gateway, client):
    with pytest.raises(openai.BadRequestError) as told:
        await client.chat.completions.create(**{**CHAT, "messages": [{"role": "user", "content": "x" * 20_000}]})
    assert told.value.body["type"] == "exceed_context_size_error"
    assert "x-fairpool-reason" not in told.value.response.headers
    assert told.value.request_id
    with pytest.raises(openai.InternalServerError) as told:
        await client.embeddings.create(model="tiny", input="hello")
    assert told.value.status_code == 501
    with pytest.raises(openai.NotFoundError) as told:
        await client.chat.completions.create(**{**CHAT, "model": "another"})
    assert told.value.response.headers["x-fairpool-reason"] == "model_not_found"
    assert gateway.dispatcher.counts.used == 0


async def test_its_key_is_the_gateways_affair(binary, model, directory, tmp_path):
    key = tmp_path / "key"
    key.write_text("secret-of-the-engine")
    with llama_server(model, directory, "--api-key-file", str(key)) as server:
        config = pool_over_llama(server.url, endpointCredential={"fromFile": str(key)})
        async with running_gateway(config) as gateway, tenant(gateway) as client:
            assert (await client.chat.completions.create(**SHORT)).usage.completion_tokens == 1
        async with running_gateway(pool_over_llama(server.url)) as gateway, tenant(gateway) as client:
            with pytest.raises(openai.AuthenticationError) as told:
                await client.chat.completions.create(**SHORT)
            assert "x-fairpool-reason" not in told.value.response.headers


class TestItsEnd:
    async def test_killed_in_the_middle_of_a_stream(self, own_engine):
        async with running_gateway(pool_over_llama(own_engine.url)) as gateway, tenant(gateway) as client:
            stream = await client.chat.completions.create(**LONG, stream=True)
            await anext(aiter(stream))
            own_engine.kill()
            with pytest.raises(openai.APIError, match="The stream broke"):
                async for _ in stream:
                    pass
            await until(lambda: gateway.in_flight == 0)
            assert gateway.outcomes == {"answer_broken": 1}
            assert gateway.dispatcher.counts.used == 0

    async def test_killed_before_the_first_byte(self, own_engine, engine):
        """Another engine answers; nobody was told of the first."""
        config = pool_over_llama(own_engine.url, engine.url)
        async with running_gateway(config) as gateway, tenant(gateway) as client:
            asked = {**SHORT, "messages": [{"role": "user", "content": "qz" * 4000}]}
            asking = asyncio.create_task(client.chat.completions.create(**asked))
            await own_engine.says("processing task")
            own_engine.kill()
            assert (await asking).usage.completion_tokens == 1
            assert gateway.dispatcher.counts.retried == 1
            assert gateway.dispatcher.counts.dispatched == 1

    async def test_told_to_stop_it_hangs_and_its_tenants_do_not(self, own_engine):
        """It listens no longer, and what runs gets neither another byte nor an end."""
        config = pool_over_llama(own_engine.url, timeouts={"idle": "1s"})
        async with running_gateway(config) as gateway, wire(gateway) as line:
            body = json.dumps({**LONG, "stream": True}).encode()
            await line.send(request_bytes(body, b"Content-Type: application/json", b"Connection: close"))
            await line.until(b'"content":"')
            own_engine.ask_to_end()
            rest = await line.rest()
            assert b'data: {"error"' in rest
            assert b"[DONE]" not in rest
            await until(lambda: gateway.in_flight == 0)

    async def test_anthropics_client_is_told_of_a_broken_stream_in_its_own_form(self, own_engine):
        asked = {"model": "tiny", "messages": CHAT["messages"], "max_tokens": 15_000}
        async with (
            running_gateway(pool_over_llama(own_engine.url)) as gateway,
            anthropic_tenant(gateway) as client,
            client.messages.stream(**asked) as stream,
        ):
            with pytest.raises(anthropic.APIError, match="The stream broke"):
                async for _ in stream.text_stream:
                    own_engine.kill()


async def test_a_request_over_its_own_slots_waits_here_and_not_inside(engine):
    async with running_gateway(pool_over_llama(engine.url)) as gateway:
        headers = {"authorization": f"Bearer {key_of('a')}"}
        async with httpx.AsyncClient(base_url=gateway.url, headers=headers, timeout=60) as client:
            asked = {**CHAT, "max_tokens": 1000}
            asking = [asyncio.create_task(client.post("/v1/chat/completions", json=asked)) for _ in range(8)]
            await until(lambda: gateway.in_flight == 2 and gateway.dispatcher.admission.waiting > 0)
            assert await engine.metric("requests_deferred") == 0
            assert {(await answer).status_code for answer in asking} == {200}
