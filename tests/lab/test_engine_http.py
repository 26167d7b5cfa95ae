"""The engine as a client meets it: the official client on every path, time, aborts, counts and its command."""

import asyncio
import base64
import json
import math
import struct
from contextlib import asynccontextmanager

import httpx
import openai
import pytest
from support.engine import engine_process, running_engine

from fairpool_lab.engine.__main__ import main
from fairpool_lab.engine.batching import Limits
from fairpool_lab.engine.server import Engine
from fairpool_lab.engine.tokens import Language

HELLO = [{"role": "user", "content": "hello world"}]
LENGTH = {"ignore_eos": True}
SLOW = Limits(max_num_seqs=2, step_base=3600.0)
"""An hour per step: nothing ever ends by itself."""


@asynccontextmanager
async def client_of(engine: Engine):
    async with openai.AsyncOpenAI(base_url=f"{engine.url}/v1", api_key="none", max_retries=0) as client:
        yield client


@pytest.fixture
async def engine():
    async with running_engine() as engine:
        yield engine


@pytest.fixture
async def client(engine):
    async with client_of(engine) as client:
        yield client


class TestOfficialClient:
    async def test_a_chat(self, client):
        answer = await client.chat.completions.create(
            model="sim", messages=HELLO, max_tokens=12, n=2, temperature=1, extra_body=LENGTH
        )
        assert [choice.finish_reason for choice in answer.choices] == ["length", "length"]
        assert [len(choice.message.content) for choice in answer.choices] == [48, 48]
        assert (answer.usage.prompt_tokens, answer.usage.completion_tokens) == (10, 24)

    @pytest.mark.parametrize("usage", [True, False])
    async def test_a_chat_streamed(self, client, usage):
        stream = await client.chat.completions.create(
            model="sim",
            messages=HELLO,
            max_tokens=5,
            stream=True,
            stream_options={"include_usage": usage},
            extra_body=LENGTH,
        )
        chunks = [chunk async for chunk in stream]
        text = [chunk.choices[0].delta.content for chunk in chunks if chunk.choices]
        assert [len(part) for part in text] == [0, 4, 4, 4, 4, 4]
        used = [chunk.usage for chunk in chunks if chunk.usage]
        assert [(each.prompt_tokens, each.completion_tokens) for each in used] == ([(10, 5)] if usage else [])

    async def test_usage_in_each_event_where_asked(self, client):
        stream = await client.chat.completions.create(
            model="sim",
            messages=HELLO,
            max_tokens=3,
            stream=True,
            stream_options={"include_usage": True, "continuous_usage_stats": True},
            extra_body=LENGTH,
        )
        assert [chunk.usage.completion_tokens async for chunk in stream] == [0, 1, 2, 3, 3]

    @pytest.mark.parametrize(
        ("prompt", "prompt_tokens", "choices"),
        [("hello", 2, 1), (["hello", "to everyone"], 5, 2), ([7, 8, 9], 3, 1), ([[7, 8], [9]], 3, 2)],
    )
    async def test_a_completion(self, client, prompt, prompt_tokens, choices):
        answer = await client.completions.create(model="sim", prompt=prompt, max_tokens=4, extra_body=LENGTH)
        assert [len(choice.text) for choice in answer.choices] == [16] * choices
        assert (answer.usage.prompt_tokens, answer.usage.completion_tokens) == (prompt_tokens, 4 * choices)

    async def test_a_completion_streamed_says_the_same_as_one_that_is_not(self, client):
        whole = await client.completions.create(model="sim", prompt="hello", max_tokens=40)
        stream = await client.completions.create(model="sim", prompt="hello", max_tokens=40, stream=True)
        assert "".join([chunk.choices[0].text async for chunk in stream]) == whole.choices[0].text

    @pytest.mark.parametrize("encoding", ["float", "base64"])
    async def test_embeddings(self, client, encoding):
        answer = await client.embeddings.create(model="sim", input=["one", "two"], encoding_format=encoding)
        vectors = [
            item.embedding if encoding == "float" else struct.unpack("<32f", base64.b64decode(item.embedding))
            for item in answer.data
        ]
        assert [math.hypot(*vector) for vector in vectors] == pytest.approx([1, 1])
        assert vectors[0] != vectors[1]
        assert answer.usage.prompt_tokens == answer.usage.total_tokens == 2

    async def test_a_response(self, client):
        answer = await client.responses.create(model="sim", input="hello", max_output_tokens=4, extra_body=LENGTH)
        assert (answer.status, answer.incomplete_details.reason) == ("incomplete", "max_output_tokens")
        assert len(answer.output_text) == 16
        assert (answer.usage.input_tokens, answer.usage.output_tokens) == (9, 4)

    async def test_a_response_streamed(self, client):
        stream = await client.responses.create(
            model="sim", input=HELLO, instructions="be brief", max_output_tokens=4, stream=True, extra_body=LENGTH
        )
        events = [event async for event in stream]
        text = "".join(event.delta for event in events if event.type == "response.output_text.delta")
        assert events[-1].response.output_text == text
        assert (events[-1].response.usage.input_tokens, events[-1].response.usage.output_tokens) == (16, 4)

    async def test_models(self, client):
        assert [model.id async for model in await client.models.list()] == ["sim"]

    async def test_an_error_has_its_own_class(self, client):
        with pytest.raises(openai.NotFoundError):
            await client.chat.completions.create(model="nope", messages=HELLO)
        with pytest.raises(openai.BadRequestError, match="maximum context length is 16384"):
            await client.completions.create(model="sim", prompt="x" * 70_000)
        with pytest.raises(openai.BadRequestError, match="you requested 16384 output tokens"):
            await client.completions.create(model="sim", prompt="hello", max_tokens=16_384)


class TestStreams:
    @pytest.mark.parametrize(("tokens", "events"), [(12, [5, 5, 2]), (10, [5, 5]), (1, [1])])
    async def test_an_event_carries_as_many_tokens_as_it_is_told_to(self, tokens, events):
        async with running_engine(tokens_per_event=5) as engine, client_of(engine) as client:
            stream = await client.completions.create(
                model="sim", prompt="hello", max_tokens=tokens, stream=True, extra_body=LENGTH
            )
            assert [len(chunk.choices[0].text) // 4 async for chunk in stream] == events

    async def test_headers_come_at_once_and_the_first_event_when_its_turn_has_come(self):
        limits = Limits(max_num_seqs=1, step_base=0.000_5)
        async with running_engine(limits=limits) as engine, httpx.AsyncClient(base_url=engine.url) as client:
            first = await connect_and_ask(engine, stream=True, tokens=16_000)
            await engine.until(lambda e: e.running == 1)
            async with asking(client, stream=True) as answer:
                assert answer.status_code == 200
                first_event = asyncio.ensure_future(anext(answer.aiter_raw()))
                assert engine.waiting == 1
                assert not first_event.done()
                first.close()
                assert (await first_event).startswith(b"data: ")
            await first.wait_closed()

    async def test_the_same_seed_says_the_same_and_another_does_not(self):
        said = []
        for seed in (1, 1, 2):
            async with running_engine(language=Language(seed=seed)) as engine, client_of(engine) as client:
                answer = await client.completions.create(model="sim", prompt="hello", max_tokens=500)
                said.append(answer.choices[0].text)
        assert said[0] == said[1] != said[2]


@asynccontextmanager
async def asking(client: httpx.AsyncClient, *, stream: bool, **fields: object):
    body = {"model": "sim", "prompt": "hello", "max_tokens": 9, "stream": stream, **fields}
    async with client.stream("POST", "/v1/completions", json=body) as answer:
        yield answer


async def connect_and_ask(engine: Engine, *, stream: bool, tokens: int = 9) -> asyncio.StreamWriter:
    _, writer = await asyncio.open_connection(engine.settings.host, engine.port)
    asked = {"model": "sim", "prompt": "hello", "max_tokens": tokens, "ignore_eos": True, "stream": stream}
    body = json.dumps(asked).encode()
    writer.write(
        b"POST /v1/completions HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%s"
        % (len(body), body)
    )
    return writer


class TestLeaving:
    @pytest.mark.parametrize("stream", [True, False])
    async def test_who_leaves_while_running_or_waiting_is_taken_out_at_once(self, stream):
        async with running_engine(limits=SLOW) as engine:
            writers = []
            for count in (1, 2, 3):
                writers.append(await connect_and_ask(engine, stream=stream))
                await engine.until(lambda e, count=count: e.running + e.waiting == count)
            assert (engine.running, engine.waiting) == (1, 2)
            for left, writer in zip((2, 1, 0), reversed(writers), strict=True):
                writer.close()
                await engine.until(lambda e, left=left: e.running + e.waiting == left)
                await writer.wait_closed()
            assert engine.runner.finished["abort"] == 3

    async def test_a_client_that_leaves_in_the_middle_of_its_stream_stops_its_tokens(self, engine):
        async with httpx.AsyncClient(base_url=engine.url) as client:
            async with asking(client, stream=True, max_tokens=10_000, ignore_eos=True, user="left") as answer:
                await anext(answer.aiter_raw())
            await engine.until(lambda e: e.running == 0)
        assert 0 < engine.tokens()["left"]["generation"] < 10_000

    async def test_a_half_closed_connection_counts_as_left(self):
        async with running_engine(limits=SLOW) as engine:
            writer = await connect_and_ask(engine, stream=True)
            await engine.until(lambda e: e.running == 1)
            writer.write_eof()
            await engine.until(lambda e: e.running == 0)
            writer.close()
            await writer.wait_closed()


class TestTime:
    async def test_the_time_scale_shortens_everything(self):
        limits = Limits(step_base=1.0, step_per_sequence=0, prefill_tokens_per_second=1e9)
        async with running_engine(limits=limits, speed=1000) as engine, client_of(engine) as client:
            loop = asyncio.get_running_loop()
            since = loop.time()
            await client.completions.create(model="sim", prompt="hello", max_tokens=100, extra_body=LENGTH)
            assert 0.1 <= loop.time() - since < 2

    async def test_what_does_not_fit_the_batch_waits_inside(self):
        limits = Limits(max_num_seqs=1, step_base=0.000_5)
        async with running_engine(limits=limits) as engine, client_of(engine) as client:
            ended = []

            async def ask(tokens: int) -> None:
                await client.completions.create(model="sim", prompt="hello", max_tokens=tokens, extra_body=LENGTH)
                ended.append(tokens)

            # The first takes a second or more, so that it still runs when the second comes, however late.
            first = asyncio.create_task(ask(2000))
            await engine.until(lambda e: e.running == 1)
            second = asyncio.create_task(ask(20))
            await engine.until(lambda e: e.waiting == 1)
            await asyncio.gather(first, second)
            assert ended == [2000, 20]

    async def test_a_full_queue_refuses_without_a_retry_after(self):
        async with (
            running_engine(limits=SLOW, max_num_queued_reqs=1) as engine,
            httpx.AsyncClient(base_url=engine.url) as client,
            asking(client, stream=True),
            asking(client, stream=True),
        ):
            refused = await client.post("/v1/completions", json={"model": "sim", "prompt": "hello"})
            assert refused.status_code == 503
            assert "retry-after" not in refused.headers
            assert (
                'vllm:admission_rejections_total{model_name="sim",reason="max_num_queued_reqs"} 1.0'
                in (await client.get("/metrics")).text
            )


class TestCounts:
    async def test_metrics_show_what_runs_and_waits_under_the_names_of_vllm(self):
        async with (
            running_engine(limits=SLOW) as engine,
            httpx.AsyncClient(base_url=engine.url) as client,
            asking(client, stream=True),
            asking(client, stream=True),
            asking(client, stream=True),
        ):
            text = (await client.get("/metrics")).text
            labels = 'engine="0",model_name="sim"'
            assert f"vllm:num_requests_running{{{labels}}} 1.0\n" in text
            assert f"vllm:num_requests_waiting{{{labels}}} 2.0\n" in text
            assert f"vllm:kv_cache_usage_perc{{{labels}}} {2 / SLOW.kv_tokens}\n" in text

    async def test_tokens_are_counted_by_label_or_user(self, engine, client):
        await client.completions.create(model="sim", prompt="hello", max_tokens=3, user="a", extra_body=LENGTH)
        await client.completions.create(
            model="sim", prompt="x" * 40, n=2, max_tokens=5, extra_body=LENGTH, extra_headers={"x-engine-label": "b"}
        )
        await client.embeddings.create(model="sim", input="hello", user="a")
        async with httpx.AsyncClient(base_url=engine.url) as http:
            tokens = (await http.get("/debug/tokens")).json()
            metrics = (await http.get("/metrics")).text
        assert tokens == {
            "a": {"requests": 2, "prompt": 4, "generation": 3},
            "b": {"requests": 1, "prompt": 10, "generation": 10},
        }
        assert 'vllm:prompt_tokens_total{engine="0",model_name="sim"} 14.0' in metrics
        assert 'vllm:generation_tokens_total{engine="0",model_name="sim"} 13.0' in metrics
        assert 'vllm:request_success_total{engine="0",finished_reason="length",model_name="sim"} 3.0' in metrics

    async def test_preemption_loses_no_token(self):
        limits = Limits(max_model_len=100, kv_tokens=100, step_base=0.000_2)
        async with running_engine(limits=limits) as engine, client_of(engine) as client:
            answers = await asyncio.gather(
                *(
                    client.completions.create(model="sim", prompt=[1] * 10, max_tokens=60, extra_body=LENGTH)
                    for _ in range(4)
                )
            )
            assert engine.runner.batcher.preemptions > 0
            assert [answer.usage.completion_tokens for answer in answers] == [60] * 4
            assert engine.tokens()[""] == {"requests": 4, "prompt": 40, "generation": 240}

    async def test_tokenize_counts_as_the_usage_does(self, engine):
        async with httpx.AsyncClient(base_url=engine.url) as http:
            answer = (await http.post("/tokenize", json={"model": "sim", "messages": HELLO})).json()
        assert (answer["count"], len(answer["tokens"])) == (10, 10)


async def test_an_api_key_is_asked_for_where_one_is_set():
    async with running_engine(api_key="secret") as engine, httpx.AsyncClient(base_url=engine.url) as http:
        refused = await http.get("/v1/models")
        assert (refused.status_code, refused.json()) == (401, {"error": "Unauthorized"})
        assert (await http.get("/v1/models", headers={"authorization": "Bearer secret"})).status_code == 200
        assert (await http.get("/metrics")).status_code == 200


class TestStopping:
    async def test_running_requests_end_with_what_they_have(self, engine):
        async with (
            httpx.AsyncClient(base_url=engine.url) as client,
            asking(client, stream=True, max_tokens=10_000, ignore_eos=True) as answer,
        ):
            body = answer.aiter_raw()
            await anext(body)
            await engine.stop()
            rest = b"".join([chunk async for chunk in body])
        assert b'"finish_reason":"abort"' in rest
        assert rest.endswith(b"data: [DONE]\n\n")

    async def test_a_process_announces_itself_and_ends_on_sigterm(self):
        async with (
            engine_process("--model", "a", "--model", "b", "--step-base", "3600") as engine,
            httpx.AsyncClient(base_url=engine.url) as client,
        ):
            models = (await client.get("/v1/models")).json()["data"]
            assert [model["id"] for model in models] == ["a", "b"]
            async with asking(client, stream=True, model="b") as answer:
                assert await engine.end() == 0
                assert b'"finish_reason":"abort"' in await answer.aread()

    @pytest.mark.parametrize(
        "arguments",
        [
            ["--speed", "0"],
            ["--kv-tokens", "10"],
            ["--fault", "melt"],
            ["--tokens-per-event", "0"],
            ["--host", "1.2.3.4"],
        ],
    )
    def test_a_wrong_setting_is_named(self, arguments, capsys):
        assert main(arguments) == 2
        assert capsys.readouterr().err.startswith("engine: ")
