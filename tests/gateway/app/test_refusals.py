"""What is refused: with the status, reason and shape that the official client knows, and nothing left behind."""

import asyncio
import contextlib
import json

import httpx
import openai
import pytest
from support.engine import running_engine
from support.gateway import running_gateway
from support.scripted_endpoint import ScriptedEndpoint, refusing_port, until
from support.tenant import CHAT, QUESTION, pool_over, request_bytes, tenant, wire

from fairpool_gateway.dispatcher import Counts

JSON = b"Content-Type: application/json"


@pytest.fixture
async def engine():
    async with running_engine() as engine:
        yield engine


@pytest.fixture
async def gateway(engine):
    async with running_gateway(pool_over(engine.url, queue={"maxRequestBytes": "1Ki"})) as gateway:
        yield gateway


def assert_untouched(gateway):
    """No state was made of what was refused."""
    dispatcher = gateway.dispatcher
    assert dispatcher.counts == Counts()
    assert not list(dispatcher.ordering.meters())
    assert not dispatcher.estimator._tenants
    assert (dispatcher.admission.waiting, dispatcher.admission.bytes) == (0, 0)
    assert gateway.in_flight == 0


def assert_told(error, status, reason, *, retry_after=False):
    """The client's exception says what happened, in OpenAI's terms."""
    headers = error.response.headers
    assert (error.status_code, headers["x-fairpool-reason"], error.code) == (status, reason, reason)
    assert set(error.body) == {"message", "type", "param", "code"}
    assert error.body["message"].endswith(".")
    assert error.request_id.startswith("req-")
    assert ("retry-after" in headers) == retry_after
    if retry_after:
        assert 1 <= int(headers["retry-after"]) <= 60


async def ask(client, **fields):
    return await client.chat.completions.create(**{**QUESTION, **fields})


class TestBeforeAnythingIsKept:
    @pytest.mark.parametrize("key", ["wrong", "key-of-", "key-of-a,key-of-b", "KEY-OF-A"])
    async def test_a_key_of_nobody(self, gateway, key):
        async with tenant(gateway, api_key=key) as client:
            for refused in (ask(client), client.models.list()):
                with pytest.raises(openai.AuthenticationError) as told:
                    await refused
                assert_told(told.value, 401, "unauthenticated")
                assert key not in told.value.message
        assert_untouched(gateway)

    @pytest.mark.parametrize("authorization", [None, "", "Bearer", "Basic key-of-a", "key-of-a"])
    async def test_no_key(self, gateway, authorization):
        headers = {} if authorization is None else {"authorization": authorization}
        async with httpx.AsyncClient(base_url=gateway.url, headers=headers) as client:
            for answer in (await client.post(CHAT, json=QUESTION), await client.get("/v1/models")):
                assert (answer.status_code, answer.json()["error"]["code"]) == (401, "unauthenticated")
        assert_untouched(gateway)

    async def test_an_unknown_model(self, gateway):
        async with tenant(gateway) as client:
            with pytest.raises(openai.NotFoundError) as told:
                await ask(client, model="gpt-4")
        assert_told(told.value, 404, "model_not_found")
        assert told.value.param == "model"
        assert_untouched(gateway)

    async def test_an_unknown_path(self, gateway):
        async with tenant(gateway) as client:
            for refused in (
                client.post("/load_lora_adapter", cast_to=object, body={"model": "sim"}),
                client.post("/chat/completions/", cast_to=object, body={"model": "sim"}),
                client.post("/../metrics", cast_to=object, body={"model": "sim"}),
                client.get("/chat/completions", cast_to=object),
                client.get("/model/sim", cast_to=object),
                client.get("/../docs", cast_to=object),
            ):
                with pytest.raises(openai.NotFoundError) as told:
                    await refused
                assert_told(told.value, 404, "not_found")
        assert_untouched(gateway)

    @pytest.mark.parametrize(
        "body",
        [b"", b"{", b"hi", b"[]", b'"sim"', b"null", b'{"model": 1}', b'{"model": null}', b'{"messages": []}', b"\xff"],
    )
    async def test_a_body_that_is_no_request(self, gateway, body):
        async with tenant(gateway) as client:
            with pytest.raises(openai.BadRequestError) as told:
                await client.post("/chat/completions", cast_to=object, content=body)
        assert_told(told.value, 400, "invalid_request")
        assert_untouched(gateway)

    @pytest.mark.parametrize("field", [{"priority": -1}, {"background": True}])
    async def test_a_way_past_others_unless_the_pool_allows_it(self, engine, gateway, field):
        async with tenant(gateway) as client:
            with pytest.raises(openai.BadRequestError) as told:
                await ask(client, extra_body=field)
        assert_told(told.value, 400, "invalid_request")
        assert told.value.param in field
        assert_untouched(gateway)
        async with running_gateway(pool_over(engine.url, overtaking="Allow")) as allowing, tenant(allowing) as client:
            assert (await ask(client, extra_body=field)).usage

    async def test_a_compressed_body(self, gateway):
        async with tenant(gateway) as client:
            with pytest.raises(openai.APIStatusError) as told:
                await ask(client, extra_headers={"content-encoding": "gzip"})
        assert_told(told.value, 415, "unsupported_encoding")
        assert_untouched(gateway)

    async def test_a_body_that_is_too_large(self, gateway):
        async with tenant(gateway) as client:
            with pytest.raises(openai.APIStatusError) as told:
                await ask(client, messages=[{"role": "user", "content": "x" * 1024}])
        assert_told(told.value, 413, "body_too_large")
        assert_untouched(gateway)

    @pytest.mark.parametrize("key", ["wrong", "key-of-a"])
    async def test_however_large_the_body_the_client_reads_why(self, gateway, key):
        async with tenant(gateway, api_key=key) as client:
            with pytest.raises(openai.APIStatusError) as told:
                await ask(client, messages=[{"role": "user", "content": "x" * (4 << 20)}])
        assert told.value.status_code == (401 if key == "wrong" else 413)
        assert_untouched(gateway)

    async def test_one_that_says_so_is_refused_before_it_is_sent(self, gateway):
        async with wire(gateway) as line:
            await line.send(request_bytes(b"", framing=b"Content-Length: 1025"))
            assert (await line.answer())[0] == 413
        assert_untouched(gateway)

    async def test_one_in_chunks_is_refused_as_soon_as_it_is_too_large(self, gateway):
        async with wire(gateway) as line:
            await line.send(request_bytes(b"400\r\n" + b"x" * 1024 + b"\r\n", framing=b"Transfer-Encoding: chunked"))
            await line.send(b"1\r\nx\r\n")
            assert (await line.answer())[0] == 413
        assert_untouched(gateway)

    async def test_of_the_largest_size_it_is_served(self, gateway):
        body = json.dumps(QUESTION).encode()
        async with wire(gateway) as line:
            await line.send(request_bytes(body + b" " * (1024 - len(body)), JSON))
            assert (await line.answer())[0] == 200

    async def test_a_refused_tenant_may_go_on_on_its_connection(self, gateway):
        async with wire(gateway) as line:
            for body, status in ((b"{}", 400), (None, 200), (b"x" * 2000, 413), (None, 200)):
                await line.send(request_bytes(body, JSON))
                assert (await line.answer())[0] == status


class TestTheQueue:
    async def test_beyond_what_may_wait_it_is_full(self):
        config = {"slots": {"perEndpoint": 1}, "queue": {"perTenant": {"maxRequests": 1}}}
        async with ScriptedEndpoint.listening() as endpoint, running_gateway(pool_over(endpoint, **config)) as gateway:
            async with tenant(gateway) as client, tenant(gateway, "b") as other:
                first = asyncio.create_task(ask(client))
                peer = await endpoint.accept()
                waits = [asyncio.create_task(ask(each)) for each in (client, other)]
                await until(lambda: gateway.dispatcher.admission.waiting == 2)
                with pytest.raises(openai.RateLimitError) as told:
                    await ask(client)
                assert_told(told.value, 429, "queue_full", retry_after=True)
                for _ in range(3):
                    await peer.request()
                    await peer.answer(b"{}", headers=b"content-type: application/json\r\n")
                await asyncio.gather(first, *waits)
            assert gateway.dispatcher.counts.dispatched == 3
            assert gateway.in_flight == 0

    async def test_who_waits_too_long_beside_a_busy_endpoint_is_told_to_come_back(self):
        config = {"slots": {"perEndpoint": 1}, "queue": {"timeout": "100ms"}}
        async with ScriptedEndpoint.listening() as endpoint, running_gateway(pool_over(endpoint, **config)) as gateway:
            async with tenant(gateway) as client, tenant(gateway, "b") as other:
                first = asyncio.create_task(ask(client))
                peer = await endpoint.accept()
                with pytest.raises(openai.RateLimitError) as told:
                    await ask(other)
                assert_told(told.value, 429, "queue_timeout", retry_after=True)
                await peer.request()
                await peer.answer(b"{}", headers=b"content-type: application/json\r\n")
                await first
            counts = gateway.dispatcher.counts
            assert (counts.dispatched, counts.removed) == (1, 1)

    async def test_without_an_endpoint_it_is_503_and_nothing_is_charged(self):
        async with running_gateway(pool_over(queue={"timeout": "100ms"})) as gateway, tenant(gateway) as client:
            with pytest.raises(openai.InternalServerError) as told:
                await ask(client)
            assert_told(told.value, 503, "no_endpoint", retry_after=True)
            assert gateway.dispatcher.counts.charged == 0
            assert gateway.dispatcher.admission.waiting == 0


class TestEndpointsThatFail:
    async def test_one_that_refuses_connections_is_a_502(self):
        async with running_gateway(pool_over(f"http://{refusing_port()}")) as gateway, tenant(gateway) as client:
            with pytest.raises(openai.InternalServerError) as told:
                await ask(client)
            assert_told(told.value, 502, "upstream_failed")
            assert gateway.in_flight == 0

    @pytest.mark.parametrize("answer", [b"", b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", b"SSH-2.0-x\r\n"])
    async def test_one_that_breaks_off_before_the_first_byte_is_a_502(self, answer):
        async with ScriptedEndpoint.listening() as endpoint, running_gateway(pool_over(endpoint)) as gateway:
            async with tenant(gateway) as client:
                asking = asyncio.create_task(ask(client))
                peer = await endpoint.accept()
                await peer.request()
                await peer.send(answer)
                peer.end()
                with pytest.raises(openai.InternalServerError) as told:
                    await asking
            assert_told(told.value, 502, "upstream_failed")
            assert gateway.in_flight == 0

    @pytest.mark.parametrize("fault", ["hang-before", "hang-after"])
    @pytest.mark.parametrize("stream", [False, True])
    async def test_one_that_stays_silent_is_a_504_and_its_connection_is_closed(self, fault, stream):
        timeouts = (
            {"firstByte": "100ms", "firstByteUnary": "1h"} if stream else {"firstByte": "1h", "firstByteUnary": "100ms"}
        )
        async with (
            running_engine(fault=fault) as engine,
            running_gateway(pool_over(engine.url, timeouts=timeouts)) as gateway,
            tenant(gateway) as client,
        ):
            with pytest.raises(openai.InternalServerError) as told:
                await ask(client, stream=stream)
            assert_told(told.value, 504, "upstream_timeout")
            assert gateway.in_flight == 0
            await engine.until(lambda now: now.running == 0)


async def test_answers_of_the_gateways_own_are_counted_by_tenant(gateway):
    async with tenant(gateway) as client:
        await client.models.list()
    assert gateway.gateway.tally_of("a").outcomes == {"answered": 1}


async def test_refusals_are_counted_by_their_reason(gateway):
    async with tenant(gateway, api_key="wrong") as client:
        for refused in (ask(client), client.models.list(), client.get("/none", cast_to=object)):
            with contextlib.suppress(openai.APIStatusError):
                await refused
    assert gateway.outcomes == {"unauthenticated": 2, "not_found": 1}
