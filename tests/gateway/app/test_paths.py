"""Which paths reach an engine, with which bodies, and that nothing else does."""

import httpx
import openai
import pytest
from support.answering import answering_endpoint
from support.config import key_of
from support.forms import CONTENT_TYPE, recording
from support.gateway import running_gateway
from support.scripted_endpoint import ScriptedEndpoint
from support.tenant import pool_over, request_bytes, tenant, wire

from fairpool_gateway.app import protocol
from fairpool_gateway.config import PATHS
from fairpool_gateway.cost import Api
from fairpool_gateway.dispatcher import Counts

JSON = b"application/json"
BODIES = {
    **dict.fromkeys(Api, (b'{"model": "sim", "input": "hello",  "prompt": "hello"}', JSON)),
    Api.RERANK: (b'{"model": "sim", "query": "hello", "documents": ["one", "two"]}', JSON),
    Api.TRANSCRIPTIONS: (recording(), CONTENT_TYPE),
    Api.TRANSLATIONS: (recording(prompt="names"), CONTENT_TYPE),
}
NOBODYS = [
    "/v1/load_lora_adapter",
    "/v1/unload_lora_adapter",
    "/load_lora_adapter",
    "/v1/models",
    "/v1/models/sim",
    "/v1/responses/r1",
    "/v1/responses/r1/cancel",
    "/v1/chat/completions/",
    "/v1/chat/completions/render",
    "/v1/messages/count_tokens",
    "/v1/images/edits",
    "/v1/files",
    "/v2/embed",
    "/v1/v1/chat/completions",
    "/V1/chat/completions",
    "//v1/chat/completions",
    "/v1//chat/completions",
    "/v1/./chat/completions",
    "/v1/../v1/load_lora_adapter",
    "/v1/chat/completions/../../load_lora_adapter",
    "/v1/chat/completions%2F..%2F..%2Fload_lora_adapter",
    "/v1/load_lora_adapter%20",
    "/chat/completions",
    "/embeddings",
    "/metrics",
    "/health",
    "/sleep",
    "/tokenizer_info",
    "/invocations",
    "/",
]


@pytest.fixture
async def endpoint():
    async with answering_endpoint() as endpoint:
        yield endpoint


@pytest.fixture
async def gateway(endpoint):
    async with running_gateway(pool_over(endpoint.url)) as gateway:
        yield gateway


@pytest.fixture
async def client(gateway):
    headers = {"authorization": f"Bearer {key_of('a')}"}
    async with httpx.AsyncClient(base_url=gateway.url, headers=headers) as client:
        yield client


async def post(client, path, body, content_type=JSON):
    return await client.post(path, content=body, headers={"content-type": content_type.decode()})


class TestTheAllowList:
    @pytest.mark.parametrize("path", PATHS)
    async def test_a_path_reaches_the_engine_as_it_is_with_its_body_as_it_is(self, endpoint, gateway, client, path):
        body, content_type = BODIES[PATHS[path]]
        answer = await post(client, path, body, content_type)
        assert (answer.status_code, answer.content) == (200, b"{}")
        assert (endpoint.path(), endpoint.asked[0][1]) == (path, body)
        assert endpoint.header("content-type") == content_type.decode()
        assert endpoint.header("content-length") == str(len(body))
        assert gateway.dispatcher.counts.charged > 0

    @pytest.mark.parametrize("path", PATHS)
    async def test_with_post_only(self, endpoint, client, path):
        for method in ("GET", "PUT", "DELETE", "PATCH", "OPTIONS"):
            assert (await client.request(method, path)).status_code == 404
        assert endpoint.asked == []

    @pytest.mark.parametrize("path", NOBODYS)
    async def test_nothing_else_does(self, endpoint, gateway, path):
        async with wire(gateway) as line:
            await line.send(request_bytes(target=path))
            status, headers, _ = await line.answer()
        assert (status, dict(headers)[b"x-fairpool-reason"]) == (404, b"not_found")
        assert endpoint.asked == []
        assert gateway.dispatcher.counts == Counts()

    async def test_the_answer_says_what_is_served(self, client):
        message = (await client.post("/v1/images/edits")).json()["error"]["message"]
        assert all(path in message for path in PATHS)

    @pytest.mark.parametrize("path", ["/v1/rerank", "/rerank", "/v1/score", "/pooling", "/classify"])
    async def test_what_a_pooling_engine_counts_is_learned(self, endpoint, gateway, client, path):
        endpoint.answer = b'{"id": "x", "data": [], "usage": {"prompt_tokens": 41, "total_tokens": 41}}'
        await post(client, path, BODIES[PATHS[path]][0])
        assert gateway.dispatcher.counts.used == 41


class TestExtraPaths:
    @pytest.fixture
    async def gateway(self, endpoint):
        config = pool_over(endpoint.url, extraPaths=["/v1/messages/count_tokens", "/generate"])
        async with running_gateway(config) as gateway:
            yield gateway

    @pytest.mark.parametrize(
        ("body", "content_type"),
        [
            (b'{"text": "hello",  "sampling_params": {}}', JSON),
            (b'{"model": "sim", "messages": [{"role": "user", "content": "hello"}]}', JSON),
            (b"\x00\xff", b"application/octet-stream"),
            (recording(), CONTENT_TYPE),
            (b"", JSON),
        ],
    )
    async def test_reach_the_engine_with_whatever_they_take(self, endpoint, gateway, client, body, content_type):
        answer = await post(client, "/generate?x=1", body, content_type)
        assert answer.status_code == 200
        assert (endpoint.path(), endpoint.asked[0][1]) == ("/generate?x=1", body)
        assert gateway.dispatcher.counts.charged > 0

    async def test_for_models_of_the_pool_only_if_they_name_one(self, endpoint, client):
        for body, content_type in ((b'{"model": "other"}', JSON), (recording(model="other"), CONTENT_TYPE)):
            answer = await post(client, "/generate", body, content_type)
            assert (answer.status_code, answer.json()["error"]["code"]) == (404, "model_not_found")
        assert endpoint.asked == []

    async def test_and_past_nobody(self, endpoint, client):
        for content_type in (JSON, b"text/plain"):
            answer = await post(client, "/generate", b'{"priority": -1}', content_type)
            assert (answer.status_code, answer.json()["error"]["param"]) == (400, "priority")
        assert endpoint.asked == []

    async def test_come_and_go_with_an_edit(self, endpoint, gateway, client):
        gateway.gateway.apply(pool_over(endpoint.url, extraPaths=["/v2/embed"]))
        assert (await post(client, "/generate", b"{}")).status_code == 404
        assert (await post(client, "/v2/embed", b"{}")).status_code == 200
        gateway.gateway.apply(pool_over(endpoint.url))
        assert (await post(client, "/v2/embed", b"{}")).status_code == 404


class TestOfficialClient:
    async def test_speech_comes_byte_for_byte(self, endpoint, gateway):
        endpoint.answer, endpoint.headers = bytes(range(256)) * 40, b"content-type: audio/mpeg\r\n"
        async with tenant(gateway) as client:
            spoken = await client.audio.speech.create(model="sim", voice="alloy", input="hello")
        assert spoken.content == endpoint.answer
        assert endpoint.path() == "/v1/audio/speech"
        assert gateway.dispatcher.counts.completed == 1

    async def test_images_are_drawn(self, endpoint, gateway):
        endpoint.answer = b'{"created": 1, "data": [{"b64_json": "QUJD"}]}'
        async with tenant(gateway) as client:
            drawn = await client.images.generate(model="sim", prompt="a cat", n=2, size="1024x1024")
        assert drawn.data[0].b64_json == "QUJD"

    async def test_its_refusals_are_told_on_every_path(self, endpoint, gateway):
        async with tenant(gateway) as client:
            for asked in (
                client.audio.speech.create(model="other", voice="alloy", input="hello"),
                client.images.generate(model="other", prompt="a cat"),
                client.audio.transcriptions.create(model="other", file=("a.wav", b"RIFF")),
                client.embeddings.create(model="other", input="hello"),
            ):
                with pytest.raises(openai.NotFoundError) as told:
                    await asked
                assert told.value.code == "model_not_found"
        assert endpoint.asked == []


LENGTH = b"Content-Length: 1000"
CHUNKED = b"Transfer-Encoding: chunked"
REFUSED = [
    (401, {"name": None}),
    (401, {"name": "nobody"}),
    (403, {"name": "b"}),
    (404, {"target": "/v1/load_lora_adapter"}),
    (404, {"target": "/v1/messages/count_tokens"}),
    (413, {"framing": b"Content-Length: 1048577"}),
    (413, {"framing": b"Content-Length: 1048577", "target": "/v1/audio/transcriptions"}),
    (415, {"headers": [b"Content-Encoding: gzip"]}),
    (415, {"headers": [b"Content-Encoding: identity", b"Content-Encoding: gzip"]}),
    (400, {"headers": [b"Content-Type: application/json", b"Content-Type: text/plain"]}),
]


class TestBeforeABodyIsSent:
    """What the head shows to be refused is answered while the body is still with the tenant."""

    @pytest.fixture
    async def gateway(self):
        tenants = [{"name": "a"}, {"name": "b", "suspend": True}]
        async with ScriptedEndpoint.listening() as endpoint:
            config = pool_over(endpoint, tenants=tenants, queue={"maxRequestBytes": "1Mi"})
            async with running_gateway(config) as gateway:
                yield gateway

    @pytest.mark.parametrize("expect", [[], [b"Expect: 100-continue"]])
    @pytest.mark.parametrize("framing", [LENGTH, CHUNKED])
    @pytest.mark.parametrize(("status", "request_"), REFUSED)
    async def test_it_is_answered(self, gateway, status, request_, framing, expect):
        fields = {"framing": framing, **request_}
        headers = fields.pop("headers", [])
        async with wire(gateway) as line:
            await line.send(request_bytes(b"", *headers, *expect, **fields))
            assert (await line.head())[0] == status
        assert gateway.dispatcher.counts == Counts()

    async def test_when_the_pool_is_suspended_too(self):
        async with running_gateway(pool_over(suspend=True)) as gateway, wire(gateway) as line:
            await line.send(request_bytes(b"", framing=LENGTH))
            assert (await line.head())[0] == 503

    async def test_but_what_looks_right_is_waited_for(self, gateway, monkeypatch):
        monkeypatch.setattr(protocol, "HEAD_SECONDS", 0.05)
        async with wire(gateway) as line:
            await line.send(request_bytes(b"", b"Expect: 100-continue", framing=LENGTH))
            assert await line.until(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
            await line.send(b"{" * 1000)
            assert (await line.head())[0] == 400
