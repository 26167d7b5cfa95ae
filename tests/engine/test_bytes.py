"""Bytes of requests and answers are the same on both sides of the gateway, and with and without it."""

import asyncio
import contextlib
import json

import httpx
import pytest
from support.config import key_of
from support.gateway import running_gateway
from support.llama.pool import CHAT, HELLO, pool_over_llama
from support.llama.server import MODEL
from support.tap import Tap

CREDENTIAL = {"authorization": f"Bearer {key_of('a')}"}
STREAM = {"stream": True, "stream_options": {"include_usage": True}}
LONG = {**CHAT, "max_tokens": 300}

ASKED = {
    "chat": ("/v1/chat/completions", CHAT),
    "chat in a stream": ("/v1/chat/completions", {**LONG, **STREAM}),
    "chat in a stream without usage": ("/v1/chat/completions", {**LONG, "stream": True}),
    "two choices in a stream": ("/v1/chat/completions", {**LONG, **STREAM, "n": 2}),
    "chat with odd spaces and fields": ("/v1/chat/completions", {**CHAT, "x-y": [None, 1e9, "\u20ac\ud83d\ude00"]}),
    "completions": ("/v1/completions", {"model": MODEL, "prompt": ["a", "b"], "max_tokens": 9}),
    "completions in a stream": ("/v1/completions", {"model": MODEL, "prompt": ["a", "b"], "max_tokens": 9, **STREAM}),
    "responses in a stream": ("/v1/responses", {"model": MODEL, "input": "a", "max_output_tokens": 9, "stream": True}),
    "messages": ("/v1/messages", {"model": MODEL, "messages": HELLO, "max_tokens": 9}),
    "messages in a stream": ("/v1/messages", {"model": MODEL, "messages": HELLO, "max_tokens": 9, "stream": True}),
}

ALWAYS_THE_SAME = {
    "tokens": ("/tokenize", {"model": MODEL, "content": "hello"}),
    "text of tokens": ("/detokenize", {"model": MODEL, "tokens": [108, 105]}),
    "what it does not offer": ("/v1/embeddings", {"model": MODEL, "input": "hello"}),
    "another thing it does not offer": ("/v1/rerank", {"model": MODEL, "query": "a", "documents": ["b"]}),
    "a prompt that is too long": (
        "/v1/chat/completions",
        {**CHAT, "messages": [{"role": "user", "content": "qz" * 10_000}]},
    ),
    "and one in a stream": ("/v1/completions", {"model": MODEL, "prompt": "qz" * 10_000, "stream": True}),
    "a number out of range": ("/v1/chat/completions", {**CHAT, "max_tokens": -5}),
    "a number that is a text": ("/v1/chat/completions", {**CHAT, "temperature": "hot"}),
    "no messages": ("/v1/chat/completions", {"model": MODEL}),
    "an image": (
        "/v1/chat/completions",
        {**CHAT, "messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:,"}}]}]},
    ),
    "messages without any": ("/v1/messages", {"model": MODEL, "max_tokens": 3}),
}
"""Answers without an id, a date or a duration."""


@contextlib.asynccontextmanager
async def tapped(engine):
    async with (
        Tap.before(engine.url) as tap,
        running_gateway(pool_over_llama(tap.url)) as gateway,
        httpx.AsyncClient(base_url=gateway.url, headers=CREDENTIAL, timeout=30) as client,
    ):
        yield tap, client


@pytest.mark.parametrize("what", ASKED)
async def test_both_sides_see_the_same(engine, what):
    path, asked = ASKED[what]
    body = json.dumps(asked, indent=1).encode()
    async with tapped(engine) as (tap, client):
        answer = await client.post(path, content=body, headers={"content-type": "application/json"})
        (exchange,) = tap.exchanges
        assert answer.status_code == 200
        assert exchange.request_body == body
        assert exchange.answer() == (200, answer.content)
        assert key_of("a").encode() not in exchange.sent


async def test_both_sides_see_the_same_of_many_at_once(engine):
    """Each tap of a connection that carried one answer has that of one client, and each client's is there once."""
    async with tapped(engine) as (tap, client):
        asked = {**LONG, **STREAM}
        answers = await asyncio.gather(*(client.post("/v1/chat/completions", json=asked) for _ in range(8)))
        came = b"".join(bytes(exchange.came) for exchange in tap.exchanges)
        ids = [json.loads(answer.text.split("\n\n")[0].removeprefix("data: "))["id"] for answer in answers]
        assert len(set(ids)) == 8
        for answer, identity in zip(answers, ids, strict=True):
            assert answer.text.endswith("data: [DONE]\n\n")
            events = answer.content.split(b"\n\n")[:-2]
            assert all(identity.encode() in event for event in events)
            assert all(came.count(event) == 1 for event in events[-1:])


@pytest.mark.parametrize("what", ALWAYS_THE_SAME)
async def test_an_answer_is_what_it_would_be_without_the_gateway(engine, gateway, what):
    path, asked = ALWAYS_THE_SAME[what]
    async with httpx.AsyncClient(headers=CREDENTIAL, timeout=30) as client:
        direct = await client.post(engine.url + path, json=asked)
        through = await client.post(gateway.url + path, json=asked)
    assert (through.status_code, through.content) == (direct.status_code, direct.content)
    assert through.headers["content-type"] == direct.headers["content-type"]


async def test_a_body_in_chunks_reaches_the_engine_with_a_length(engine):
    async def chunks():
        for letter in json.dumps(CHAT):
            yield letter.encode()

    async with tapped(engine) as (tap, client):
        answer = await client.post(
            "/v1/chat/completions", content=chunks(), headers={"content-type": "application/json"}
        )
        assert answer.json()["usage"]["completion_tokens"] == 6
        head = bytes(tap.exchanges[0].sent).partition(b"\r\n\r\n")[0].lower()
        assert b"content-length: %d" % len(json.dumps(CHAT)) in head
        assert b"transfer-encoding" not in head
