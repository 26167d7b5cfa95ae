"""The endpoint of the benchmarks: it answers at once, holds what it is told to hold, and stamps what it streams."""

from __future__ import annotations

import asyncio
import json
import re
import time

import httpx
import openai
from support.load_programs import backend, load, question
from support.processes import PATIENCE


def client(port: int) -> httpx.AsyncClient:
    return httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=PATIENCE)


def asks(prompt: str) -> dict:
    return {"model": "sim", "messages": [{"role": "user", "content": prompt}]}


async def counts(port: int) -> dict:
    async with client(port) as admin:
        return (await admin.get("/counts")).json()


async def test_it_answers_as_the_official_client_expects():
    async with backend() as port, openai.AsyncOpenAI(base_url=f"http://127.0.0.1:{port}/v1", api_key="any") as tenant:
        assert [model.id for model in (await tenant.models.list()).data] == ["sim"]
        answer = await tenant.chat.completions.create(**asks("hello"))
        assert answer.choices[0].message.content.startswith("fair")
        assert answer.usage.total_tokens == answer.usage.prompt_tokens + answer.usage.completion_tokens
        assert 500 < len(answer.to_json(indent=None)) < 800
        stream = await tenant.chat.completions.create(**asks("events=4 rate=1000 "), stream=True)
        pieces = [piece.choices[0] async for piece in stream]
        assert [bool(re.fullmatch(r"@\d{19} ", piece.delta.content)) for piece in pieces[:-1]] == [True] * 4
        assert pieces[-1].finish_reason == "stop"


async def test_events_carry_the_time_at_which_they_were_sent_and_keep_their_rate():
    async with backend() as port, client(port) as tenant:
        before = time.monotonic_ns()
        answer = await tenant.post("/v1/chat/completions", json=asks("events=21 rate=100 "))
        after = time.monotonic_ns()
    stamps = [int(stamp) for stamp in re.findall(r"@(\d{19})", answer.text)]
    assert len(stamps) == 21
    assert stamps == sorted(stamps)
    assert before < stamps[0] < stamps[-1] < after
    assert stamps[-1] - stamps[0] > 19 * 10_000_000


async def test_it_holds_requests_all_at_once_and_for_as_long_as_they_say():
    async with backend() as port, client(port) as tenant:
        began = time.monotonic()
        held = [tenant.post("/v1/chat/completions", json=asks("hold_ms=400 ")) for _ in range(30)]
        answers = await asyncio.gather(*held)
        assert time.monotonic() - began >= 0.4
        assert {answer.status_code for answer in answers} == {200}
        counted = await counts(port)
    assert (counted["requests"], counted["answered"], counted["most"], counted["now"]) == (30, 30, 30, 0)


async def test_what_is_held_is_let_go_of_when_its_peer_leaves():
    async with backend() as port:
        writers = []
        for prompt in ("hold_ms=60000 ", "events=60000 rate=10 ", "events=10 rate=1 hold_ms=60000 "):
            body = json.dumps(asks(prompt)).encode()
            _, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(b"POST / HTTP/1.1\r\ncontent-length: %d\r\n\r\n%s" % (len(body), body))
            await writer.drain()
            writers.append(writer)
        async with asyncio.timeout(PATIENCE):
            while (await counts(port))["now"] != 3:
                pass
            for writer in writers:
                writer.close()
            while (counted := await counts(port))["now"]:
                pass
    assert (counted["requests"], counted["answered"], counted["left"]) == (3, 0, 3)


async def test_a_peer_that_takes_nothing_of_its_stream_is_cut():
    async with backend() as port:
        body = json.dumps(asks("events=1000000 rate=20000 ")).encode()
        reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 10)
        writer.write(b"POST / HTTP/1.1\r\ncontent-length: %d\r\n\r\n%s" % (len(body), body))
        async with asyncio.timeout(PATIENCE):
            await reader.readline()
            while not (counted := await counts(port))["left"]:
                pass
        writer.close()
    assert counted["now"] == 0


async def test_what_is_no_http_is_cut():
    async with backend() as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"HELO\r\n\r\n")
        async with asyncio.timeout(PATIENCE):
            assert await reader.read() == b""
        writer.close()


async def test_load_and_endpoint_agree_on_what_was_asked_and_answered(tmp_path):
    async with backend() as port:
        body = question(tmp_path, "fair? " * 100)
        seen = await load(port, "--connections", "32", "--seconds", "0.4", *body)
        counted = await counts(port)
    assert seen["begun"] == seen["answered"] == counted["requests"] == counted["answered"]
    assert counted["body_bytes"] == seen["begun"] * len((tmp_path / "body.json").read_bytes())


async def test_they_agree_on_streams_too(tmp_path):
    async with backend() as port:
        body = question(tmp_path, "events=20 rate=200 ", stream=True)
        seen = await load(port, "streams", "--connections", "50", "--events", "20", "--seconds", "20", *body)
        counted = await counts(port)
    assert (seen["answered"], seen["events"]) == (50, 1000) == (counted["streams"], counted["events"])
    assert counted["most"] > 1
