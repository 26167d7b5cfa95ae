"""Every API that llama.cpp's server speaks, through the gateway, with the official clients.

One letter of an answer is one token, so what the engine counts can be counted again here, and what the gateway read of
its answers is compared with what the clients were told.
"""

import httpx
import pytest
from support.config import key_of
from support.gateway import running_gateway
from support.llama.pool import CHAT, HELLO, anthropic_tenant, pool_over_llama
from support.llama.server import MODEL, llama_server
from support.scripted_endpoint import until
from support.tenant import tenant

USAGE = {"stream": True, "stream_options": {"include_usage": True}}
INPUT = {"model": MODEL, "input": "hello", "max_output_tokens": 6}
PROMPT = {"model": MODEL, "prompt": "hello", "max_tokens": 6}


async def learned(gateway, requests=1):
    """Tokens read and written, as the gateway took them from the answers of so many requests."""
    await until(lambda: gateway.dispatcher.counts.completed == requests)
    counts = gateway.dispatcher.counts
    return counts.input, counts.output


def told(usage):
    return usage.prompt_tokens, usage.completion_tokens


async def all_of(stream):
    return [event async for event in stream]


class TestChat:
    async def test_usage_is_learned_as_the_engine_tells_it(self, gateway, client):
        answer = await client.chat.completions.create(**CHAT)
        choice = answer.choices[0]
        assert (choice.finish_reason, len(choice.message.content)) == ("length", 6)
        assert told(answer.usage) == (30, 6)
        assert await learned(gateway) == (30, 6)

    async def test_a_stream_tells_it_once_where_it_is_asked_to(self, gateway, client):
        events = await all_of(await client.chat.completions.create(**CHAT, **USAGE))
        text = "".join(event.choices[0].delta.content or "" for event in events if event.choices)
        assert len(text) == 6
        assert [told(event.usage) for event in events if event.usage] == [(30, 6)]
        assert await learned(gateway) == (30, 6)

    async def test_a_stream_that_tells_none_is_counted_by_its_events(self, gateway, client):
        await all_of(await client.chat.completions.create(**CHAT, **USAGE))
        assert await learned(gateway) == (30, 6)
        events = await all_of(await client.chat.completions.create(**CHAT, stream=True))
        assert not any(event.usage for event in events)
        said = sum(bool(event.choices[0].delta.content) for event in events if event.choices)
        assert 0 < said <= 6
        assert (await learned(gateway, requests=2))[1] == pytest.approx(12, abs=3)

    async def test_where_each_choice_tells_its_own_they_are_added_up(self, gateway, client):
        events = await all_of(await client.chat.completions.create(**CHAT, **USAGE, n=2))
        texts = ["", ""]
        for event in events:
            for choice in event.choices:
                texts[choice.index] += choice.delta.content or ""
        assert [len(text) for text in texts] == [6, 6]
        assert [told(event.usage) for event in events if event.usage] == [(30, 6), (30, 6)]
        assert await learned(gateway) == (30, 12)

    async def test_what_the_engine_tells_of_one_choice_only_is_taken_for_what_it_says(self, gateway, client):
        answer = await client.chat.completions.create(**CHAT, n=2)
        assert [len(choice.message.content) for choice in answer.choices] == [6, 6]
        assert told(answer.usage) == (30, 6)
        assert await learned(gateway) == (30, 6)

    async def test_a_prompt_that_was_cached_is_counted_as_read(self, gateway, client):
        for number in (1, 2):
            answer = await client.chat.completions.create(**CHAT)
            assert await learned(gateway, number) == (30 * number, 6 * number)
        assert answer.usage.prompt_tokens_details.cached_tokens > 0


class TestCompletions:
    async def test_usage_is_learned_as_the_engine_tells_it(self, gateway, client):
        answer = await client.completions.create(**PROMPT)
        assert len(answer.choices[0].text) == 6
        assert told(answer.usage) == (5, 6)
        assert await learned(gateway) == (5, 6)

    async def test_a_stream_tells_it_beside_its_last_choice(self, gateway, client):
        events = await all_of(await client.completions.create(**PROMPT, **USAGE))
        assert len("".join(event.choices[0].text for event in events)) == 6
        assert [told(event.usage) for event in events if event.usage] == [(5, 6)]
        assert events[-1].choices
        assert await learned(gateway) == (5, 6)

    async def test_of_two_prompts_in_a_stream_both_are_counted(self, gateway, client):
        asked = {**PROMPT, "prompt": ["hello", "world"]}
        # This engine begins such a stream with an event that is null.
        events = [event for event in await all_of(await client.completions.create(**asked, **USAGE)) if event]
        assert len("".join(choice.text for event in events for choice in event.choices)) == 12
        assert sum(event.usage.completion_tokens for event in events if event.usage) == 12
        assert (await learned(gateway))[1] == 12

    async def test_a_prompt_of_tokens_is_one(self, gateway, client):
        answer = await client.completions.create(**{**PROMPT, "prompt": [108, 105, 112]})
        assert told(answer.usage) == (3, 6)
        assert await learned(gateway) == (3, 6)


class TestResponses:
    async def test_usage_is_learned_as_the_engine_tells_it(self, gateway, client):
        answer = await client.responses.create(**INPUT)
        assert len(answer.output_text) == 6
        assert (answer.usage.input_tokens, answer.usage.output_tokens) == (24, 6)
        assert await learned(gateway) == (24, 6)

    async def test_a_stream_tells_it_in_its_last_event(self, gateway, client):
        events = await all_of(await client.responses.create(**INPUT, stream=True))
        assert len("".join(event.delta for event in events if event.type == "response.output_text.delta")) == 6
        assert events[-1].type == "response.completed"
        assert events[-1].response.usage.output_tokens == 6
        assert await learned(gateway) == (24, 6)


class TestMessages:
    """What was cached is told apart from what was read, and both were."""

    async def test_usage_is_learned_with_what_was_cached(self, gateway):
        async with anthropic_tenant(gateway) as client:
            for number in (1, 2):
                message = await client.messages.create(**CHAT)
                assert len(message.content[0].text) == 6
                usage = message.usage
                assert usage.input_tokens + (usage.cache_read_input_tokens or 0) == 30
                assert await learned(gateway, number) == (30 * number, 6 * number)
        assert usage.cache_read_input_tokens > 0

    async def test_a_stream_tells_it_at_both_ends(self, gateway):
        async with anthropic_tenant(gateway) as client:
            for number in (1, 2):
                async with client.messages.stream(**CHAT) as stream:
                    assert len("".join([text async for text in stream.text_stream])) == 6
                assert await learned(gateway, number) == (30 * number, 6 * number)

    async def test_they_can_be_counted_where_the_pool_allows_that_path(self, engine):
        config = pool_over_llama(engine.url, extraPaths=["/v1/messages/count_tokens"])
        async with running_gateway(config) as gateway, anthropic_tenant(gateway) as client:
            counted = await client.messages.count_tokens(model=MODEL, messages=HELLO)
        assert counted.input_tokens == 30


class TestTokenize:
    async def test_there_and_back(self, gateway):
        async with httpx.AsyncClient(base_url=gateway.url, headers={"api-key": key_of("a")}) as http:
            there = await http.post("/tokenize", json={"model": MODEL, "content": "hello"})
            tokens = there.json()["tokens"]
            assert len(tokens) == 5
            back = await http.post("/detokenize", json={"model": MODEL, "tokens": tokens})
            assert back.json() == {"content": "hello"}


@pytest.fixture
def embedder(binary, model, directory):
    """A server that does nothing else."""
    with llama_server(model, directory, "--embeddings", "--pooling", "mean") as server:
        yield server


async def test_embeddings_as_numbers_and_as_the_client_prefers_them(embedder):
    async with running_gateway(pool_over_llama(embedder.url)) as gateway, tenant(gateway) as client:
        asked = {"model": MODEL, "input": ["hello", "world!"]}
        packed = await client.embeddings.create(**asked)
        plain = await client.embeddings.create(**asked, encoding_format="float")
        assert await learned(gateway, requests=2) == (22, 0)
    assert packed.usage.prompt_tokens == 11
    for one, other in zip(packed.data, plain.data, strict=True):
        assert len(one.embedding) == 64
        assert one.embedding == pytest.approx(other.embedding, rel=1e-6)
