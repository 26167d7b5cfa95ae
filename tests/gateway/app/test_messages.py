"""Anthropic's client is served like OpenAI's, and whatever goes wrong it is told in the form that it reads."""

import asyncio
import contextlib
import json

import anthropic
import anyio
import openai
import pytest
from support.answering import answering_endpoint
from support.config import key_of
from support.engine import running_engine
from support.gateway import running_gateway
from support.scripted_endpoint import PATIENCE, ScriptedEndpoint, refusing_port, until
from support.tenant import pool_over, request_bytes, wire

QUESTION = {"model": "sim", "messages": [{"role": "user", "content": "hello"}], "max_tokens": 3}


@contextlib.asynccontextmanager
async def tenant(gateway, name="a", **options):
    options = {"api_key": key_of(name), "max_retries": 0, "timeout": PATIENCE, **options}
    async with anthropic.AsyncAnthropic(base_url=gateway.url, **options) as client:
        yield client


async def ask(client, **fields):
    return await client.messages.create(**{**QUESTION, **fields})


def assert_told(error, status, reason, kind, *, retry_after=False):
    """The client's exception says what happened, in Anthropic's terms."""
    headers = error.response.headers
    assert (error.status_code, headers["x-fairpool-reason"], error.error_code) == (status, reason, reason)
    assert error.body.keys() == {"type", "error"}
    assert (error.body["type"], error.type) == ("error", kind)
    assert error.api_message.endswith(".")
    assert error.request_id == headers["x-request-id"]
    assert error.request_id.startswith("req-")
    assert ("retry-after" in headers) == retry_after


class TestAnswers:
    @pytest.fixture
    async def engine(self):
        async with running_engine() as engine:
            yield engine

    @pytest.fixture
    async def gateway(self, engine):
        async with running_gateway(pool_over(engine.url)) as gateway:
            yield gateway

    @pytest.fixture
    async def direct(self, engine):
        async with anthropic.AsyncAnthropic(base_url=engine.url, api_key="none", max_retries=0) as client:
            yield client

    async def test_a_message_says_what_the_engine_says(self, gateway, direct):
        async with tenant(gateway) as client:
            answer, same = await ask(client, system="be brief"), await ask(direct, system="be brief")
            assert answer.model_dump(exclude={"id"}) == same.model_dump(exclude={"id"})
            assert answer._request_id.startswith("req-")

    async def test_so_does_a_stream(self, gateway, direct):
        texts = []
        async with tenant(gateway) as client:
            for each in (client, direct):
                async with each.messages.stream(**QUESTION) as stream:
                    texts.append([text async for text in stream.text_stream])
        assert texts[0] == texts[1] != []

    @pytest.mark.parametrize("stream", [False, True])
    async def test_it_is_learned_from_as_the_engine_counts(self, gateway, engine, stream):
        async with tenant(gateway) as client:
            answer = await ask(client, stream=stream)
            if stream:
                _ = [event async for event in answer]
        used = engine.tokens()[""]
        await until(lambda: gateway.in_flight == 0)
        assert gateway.dispatcher.counts.used == used["prompt"] + 2 * used["generation"] > 0

    @pytest.mark.parametrize("options", [{}, {"api_key": None, "auth_token": key_of("a")}])
    async def test_its_key_may_come_in_either_header_and_goes_no_further(self, options):
        async with answering_endpoint() as endpoint, running_gateway(pool_over(endpoint.url)) as gateway:
            endpoint.answer = b'{"type": "message", "content": []}'
            async with tenant(gateway, **options) as client:
                await ask(client)
            assert endpoint.path() == "/v1/messages"
            assert endpoint.header("anthropic-version")
            assert key_of("a").encode() not in endpoint.asked[0][0]

    async def test_what_the_engine_refuses_passes_as_it_is(self, gateway):
        async with tenant(gateway) as client:
            with pytest.raises(anthropic.BadRequestError) as told:
                await ask(client, max_tokens=0)
        assert told.value.body["error"]["message"].startswith("max_tokens must be at least 1")
        assert told.value.request_id.startswith("req-")
        assert "x-fairpool-reason" not in told.value.response.headers


class TestRefusals:
    @pytest.fixture
    async def gateway(self):
        async with ScriptedEndpoint.listening() as endpoint:
            config = {"queue": {"maxRequestBytes": "1Ki"}, "tenants": [{"name": "a"}, {"name": "b", "suspend": True}]}
            async with running_gateway(pool_over(endpoint, **config)) as gateway:
                yield gateway

    @pytest.mark.parametrize(
        ("fields", "options", "exception", "status", "reason", "kind"),
        [
            ({}, {"api_key": "x"}, "AuthenticationError", 401, "unauthenticated", "authentication_error"),
            ({}, {"name": "b"}, "PermissionDeniedError", 403, "tenant_suspended", "permission_error"),
            ({"model": "claude"}, {}, "NotFoundError", 404, "model_not_found", "not_found_error"),
            ({"model": 7}, {}, "BadRequestError", 400, "invalid_request", "invalid_request_error"),
            ({"system": "x" * 1024}, {}, "RequestTooLargeError", 413, "body_too_large", "request_too_large"),
            (
                {"extra_headers": {"content-encoding": "gzip"}},
                {},
                "APIStatusError",
                415,
                "unsupported_encoding",
                "invalid_request_error",
            ),
        ],
    )
    async def test_of_what_is_wrong(self, gateway, fields, options, exception, status, reason, kind):
        async with tenant(gateway, **options) as client:
            with pytest.raises(getattr(anthropic, exception)) as told:
                await ask(client, **fields)
        assert_told(told.value, status, reason, kind)
        assert gateway.dispatcher.counts.dispatched == 0

    async def test_of_paths_below_that_are_not_served(self, gateway):
        async with tenant(gateway) as client:
            with pytest.raises(anthropic.NotFoundError) as told:
                await client.messages.count_tokens(model="sim", messages=QUESTION["messages"])
            assert_told(told.value, 404, "not_found", "not_found_error")
            with pytest.raises(anthropic.NotFoundError) as told:
                await client.messages.batches.list()
            assert_told(told.value, 404, "not_found", "not_found_error")

    async def test_and_of_no_others(self, gateway):
        async with openai.AsyncOpenAI(base_url=f"{gateway.url}/v1", api_key=key_of("a"), max_retries=0) as client:
            with pytest.raises(openai.NotFoundError) as told:
                await client.post("/messages-of-others", cast_to=object, body={})
        assert told.value.code == "not_found"

    async def test_of_a_queue_that_is_full_after_which_it_tries_again_when_it_was_told_to(self, monkeypatch):
        config = {"slots": {"perEndpoint": 1}, "queue": {"perTenant": {"maxRequests": 1}}}
        async with (
            answering_endpoint() as endpoint,
            running_gateway(pool_over(endpoint.url, **config)) as gateway,
            tenant(gateway) as client,
            tenant(gateway, max_retries=1) as patient,
        ):
            endpoint.may_answer.clear()
            endpoint.answer = b'{"type": "message"}'
            asking = [asyncio.create_task(ask(client)) for _ in range(2)]
            await until(lambda: gateway.dispatcher.admission.waiting == gateway.in_flight == 1)
            with pytest.raises(anthropic.RateLimitError) as told:
                await ask(client)
            assert_told(told.value, 429, "queue_full", "rate_limit_error", retry_after=True)

            slept = []

            async def sleep(seconds):
                slept.append(seconds)
                endpoint.may_answer.set()
                await asyncio.gather(*asking)

            monkeypatch.setattr(anyio, "sleep", sleep)
            assert (await ask(patient)).type == "message"
            assert slept == [pytest.approx(int(told.value.response.headers["retry-after"]), rel=0.5)]

    async def test_without_an_endpoint(self):
        async with running_gateway(pool_over(queue={"timeout": "50ms"})) as gateway, tenant(gateway) as client:
            with pytest.raises(anthropic.APIStatusError) as told:
                await ask(client)
        assert_told(told.value, 503, "no_endpoint", "overloaded_error", retry_after=True)

    async def test_of_an_endpoint_that_cannot_be_reached(self):
        async with running_gateway(pool_over(f"http://{refusing_port()}")) as gateway, tenant(gateway) as client:
            with pytest.raises(anthropic.InternalServerError) as told:
                await ask(client)
        assert_told(told.value, 502, "upstream_failed", "api_error")

    async def test_of_an_endpoint_that_stays_silent(self):
        async with running_engine(fault="hang-before") as engine:
            config = pool_over(engine.url, timeouts={"firstByteUnary": "50ms"})
            async with running_gateway(config) as gateway, tenant(gateway) as client:
                with pytest.raises(anthropic.APIStatusError) as told:
                    await ask(client)
        assert_told(told.value, 504, "upstream_timeout", "timeout_error")

    async def test_of_a_pool_that_is_suspended(self):
        async with running_gateway(pool_over(suspend=True)) as gateway, tenant(gateway) as client:
            with pytest.raises(anthropic.APIStatusError) as told:
                await ask(client)
        assert_told(told.value, 503, "pool_suspended", "overloaded_error", retry_after=True)


class TestBrokenStreams:
    @pytest.mark.parametrize("fault", ["die:4", "truncate:4"])
    async def test_the_official_client_raises_what_happened_after_what_it_got(self, fault):
        async with running_engine(fault=fault) as engine, running_gateway(pool_over(engine.url)) as gateway:
            async with tenant(gateway) as client:
                stream, seen = await ask(client, stream=True, max_tokens=9), []
                with pytest.raises(anthropic.APIStatusError) as told:
                    while True:
                        seen.append((await anext(stream)).type)
            assert seen == ["message_start", "content_block_start", "content_block_delta", "content_block_delta"]
            assert told.value.api_message.startswith("The stream broke: ")
            assert (told.value.type, told.value.error_code) == ("api_error", "upstream_failed")
            assert gateway.in_flight == 0
            assert gateway.dispatcher.counts.used == 0

    async def test_an_event_of_which_only_the_name_came_gives_way_to_the_error(self):
        async with (
            ScriptedEndpoint.listening() as endpoint,
            running_gateway(pool_over(endpoint)) as gateway,
            wire(gateway) as line,
        ):
            await line.send(request_bytes(json.dumps(QUESTION).encode(), target="/v1/messages"))
            peer = await endpoint.accept()
            await peer.request()
            event = b'event: ping\ndata: {"type": "ping"}\n\n'
            began = b"event: message_delta\ndata: {"
            await peer.send(
                b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
                b"%x\r\n%b\r\n%x\r\n%b\r\n" % (len(event), event, len(began), began)
            )
            await line.until(event)
            peer.end()
            rest = await line.until(b"0\r\n\r\n")
        assert b"message_delta" not in rest
        name, data, *_ = rest.split(b"\r\n")[2].split(b"\n")
        assert name == b"event: error"
        said = json.loads(data.removeprefix(b"data: "))
        assert (said["type"], said["error"]["type"]) == ("error", "api_error")
