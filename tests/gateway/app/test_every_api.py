"""Every API works through the gateway with the official client, and says what the engine said."""

import contextlib

import openai
import pytest
from support.engine import running_engine
from support.gateway import running_gateway
from support.tenant import pool_over, tenant

MESSAGES = [{"role": "user", "content": "hello"}]


@pytest.fixture
async def engine():
    async with running_engine() as engine:
        yield engine


@pytest.fixture
async def gateway(engine):
    async with running_gateway(pool_over(engine.url)) as gateway:
        yield gateway


@pytest.fixture
async def through(gateway):
    async with tenant(gateway) as client:
        yield client


@pytest.fixture
async def direct(engine):
    async with openai.AsyncOpenAI(base_url=f"{engine.url}/v1", api_key="none", max_retries=0) as client:
        yield client


def said(answer):
    """An answer without what differs between any two."""
    return answer.model_dump(exclude={"id", "created", "created_at"})


async def chat(client):
    return said(await client.chat.completions.create(model="sim", messages=MESSAGES, max_tokens=5))


async def chat_stream(client):
    options = {"include_usage": True}
    stream = await client.chat.completions.create(
        model="sim", messages=MESSAGES, max_tokens=5, stream=True, stream_options=options
    )
    return [said(chunk) async for chunk in stream]


async def completion(client):
    return said(await client.completions.create(model="sim", prompt="once upon", max_tokens=5, n=2))


async def completion_stream(client):
    stream = await client.completions.create(model="sim", prompt="once upon", max_tokens=5, stream=True)
    return [said(chunk) async for chunk in stream]


async def embedding(client):
    return said(await client.embeddings.create(model="sim", input=["one", "two"]))


async def response(client):
    answer = await client.responses.create(model="sim", input="hello", max_output_tokens=5)
    return answer.output_text, answer.usage.model_dump()


async def response_stream(client):
    stream = await client.responses.create(model="sim", input="hello", max_output_tokens=5, stream=True)
    return [(event.type, getattr(event, "delta", None)) async for event in stream]


APIS = [chat, chat_stream, completion, completion_stream, embedding, response, response_stream]


@pytest.mark.parametrize("api", APIS)
async def test_it_says_what_the_engine_says_and_is_learned_from(api, through, direct, gateway):
    answer = await api(through)
    assert answer
    assert answer == await api(direct)
    assert gateway.dispatcher.counts.used > 0
    assert gateway.dispatcher.counts.completed == 1
    assert gateway.in_flight == 0


async def test_the_list_of_models_is_the_pools(through):
    assert [model.id async for model in through.models.list()] == ["sim"]


async def test_one_of_them_can_be_asked_for(through, gateway):
    assert (await through.models.retrieve("sim")).id == "sim"
    with pytest.raises(openai.NotFoundError) as told:
        await through.models.retrieve("meta-llama/none")
    assert (told.value.code, told.value.param) == ("model_not_found", "model")
    assert "meta-llama/none" in told.value.message
    assert told.value.request_id
    assert gateway.outcomes == {"answered": 1, "model_not_found": 1}


async def test_an_engines_refusal_goes_out_as_it_is_and_teaches_nothing(through, gateway):
    with pytest.raises(openai.BadRequestError) as told:
        await through.chat.completions.create(model="sim", messages=MESSAGES, max_tokens=-1)
    assert "x-fairpool-reason" not in told.value.response.headers
    assert gateway.dispatcher.counts.used == 0
    assert gateway.in_flight == 0


async def test_a_stream_without_usage_is_counted_by_its_events(through, gateway):
    stream = await through.chat.completions.create(
        model="sim", messages=MESSAGES, max_tokens=50, stream=True, extra_body={"ignore_eos": True}
    )
    async for _ in stream:
        pass
    assert gateway.dispatcher.counts.used >= 2 * 50


@pytest.mark.parametrize("fault", ["split:3", "gzip"])
@pytest.mark.parametrize("api", [chat, chat_stream, response_stream])
async def test_answers_that_are_cut_or_compressed_are_the_same_and_are_learned_from(fault, api, engine, direct):
    plain = await api(direct)
    async with contextlib.AsyncExitStack() as stack:
        gateway = await stack.enter_async_context(running_gateway(pool_over(engine.url)))
        client = await stack.enter_async_context(tenant(gateway, default_headers={"x-engine-fault": fault}))
        assert await api(client) == plain
        assert gateway.dispatcher.counts.used > 0


class TestRequestId:
    async def test_the_tenants_own_reaches_the_engine_and_comes_back(self, through):
        raw = await through.chat.completions.with_raw_response.create(
            model="sim", messages=MESSAGES, max_tokens=1, extra_headers={"x-request-id": "mine-1"}
        )
        assert raw.headers.get_list("x-request-id") == ["mine-1"]
        assert raw.parse().id == "chatcmpl-mine-1"

    async def test_one_is_made_where_there_is_none_and_each_is_new(self, through):
        first, second = [
            await through.chat.completions.create(model="sim", messages=MESSAGES, max_tokens=1) for _ in range(2)
        ]
        assert first.id == f"chatcmpl-{first._request_id}"
        assert first._request_id != second._request_id

    async def test_it_is_on_refusals_and_on_the_list_of_models(self, through):
        with pytest.raises(openai.NotFoundError) as told:
            await through.completions.create(model="none", prompt="x", extra_headers={"x-request-id": "mine-2"})
        assert told.value.request_id == "mine-2"
        raw = await through.models.with_raw_response.list(extra_headers={"x-request-id": "mine-3"})
        assert raw.headers["x-request-id"] == "mine-3"
