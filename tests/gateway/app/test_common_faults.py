"""What users of such gateways report as broken, shown to be right through the official client."""

import asyncio
import json
import secrets

import anyio
import openai
import pytest
from support.answering import JSON, answering_endpoint
from support.config import digest_of, key_of
from support.engine import running_engine
from support.gateway import running_gateway
from support.scripted_endpoint import ScriptedEndpoint, until
from support.tenant import QUESTION, pool_over, request_bytes, tenant, wire


@pytest.fixture
async def endpoint():
    async with answering_endpoint() as endpoint:
        yield endpoint


@pytest.fixture
async def gateway(endpoint):
    async with running_gateway(pool_over(endpoint.url)) as gateway:
        yield gateway


async def ask(client, **fields):
    return await client.chat.completions.create(**{**QUESTION, **fields})


class TestRetryAfter:
    @pytest.fixture
    def slept(self, monkeypatch):
        """How long the client slept; asleep it lets `awake` happen."""
        slept = []

        async def sleep(seconds):
            slept.append(seconds)
            await self.awake()

        monkeypatch.setattr(anyio, "sleep", sleep)
        return slept

    async def test_of_a_queue_that_is_full_is_obeyed_and_then_there_is_room(self, endpoint, slept):
        config = {"slots": {"perEndpoint": 1}, "queue": {"perTenant": {"maxRequests": 1}}}
        async with (
            running_gateway(pool_over(endpoint.url, **config)) as gateway,
            tenant(gateway) as client,
            tenant(gateway, max_retries=1) as patient,
        ):
            endpoint.may_answer.clear()
            asking = [asyncio.create_task(ask(client)) for _ in range(2)]
            await until(lambda: gateway.dispatcher.admission.waiting == gateway.in_flight == 1)

            async def awake():
                endpoint.may_answer.set()
                await asyncio.gather(*asking)

            self.awake = awake
            await ask(patient)
            assert gateway.outcomes == {"queue_full": 1, "answered": 3}
        # The one request that was dispatched a moment ago leaves a rate of one in 10 s, and of that up to a third off.
        assert len(slept) == 1
        assert 6 <= slept[0] <= 11

    async def test_of_a_pool_that_is_suspended_is_obeyed_and_is_no_longer_than_the_client_obeys(self, endpoint, slept):
        async with (
            running_gateway(pool_over(endpoint.url, suspend=True)) as gateway,
            tenant(gateway, max_retries=1) as patient,
        ):

            async def awake():
                gateway.gateway.apply(pool_over(endpoint.url))

            self.awake = awake
            await ask(patient)
        assert len(slept) == 1
        assert 40 <= slept[0] <= 60

    async def test_of_an_engine_passes_as_it_is(self):
        async with (
            ScriptedEndpoint.listening() as endpoint,
            running_gateway(pool_over(endpoint)) as gateway,
            tenant(gateway) as client,
        ):
            asking = asyncio.create_task(ask(client))
            peer = await endpoint.accept()
            await peer.request()
            told = b'{"error": {"message": "too many", "code": 429}}'
            own = b"retry-after: 7\r\nretry-after-ms: 6500\r\nx-ratelimit-reset: soon\r\n"
            head = b"HTTP/1.1 429 Too Many Requests\r\n%b%bcontent-length: %d\r\n\r\n" % (own, JSON, len(told))
            await peer.send(head + told)
            with pytest.raises(openai.RateLimitError) as refused:
                await asking
        headers = refused.value.response.headers
        assert refused.value.response.content == told
        assert (headers["retry-after"], headers["retry-after-ms"]) == ("7", "6500")
        assert headers["x-ratelimit-reset"] == "soon"
        assert "x-fairpool-reason" not in headers
        assert refused.value.request_id == headers["x-request-id"]


class TestTheRequest:
    @pytest.mark.parametrize("name", ["max_tokens", "max_completion_tokens"])
    @pytest.mark.parametrize("value", [None, 0, -1, "10", 2.5, 10**30, True])
    async def test_has_its_limit_judged_by_the_engine_whatever_it_is(self, gateway, endpoint, name, value):
        body = {"model": "sim", "messages": QUESTION["messages"], name: value}
        async with tenant(gateway) as client:
            await client.post("/chat/completions", cast_to=object, body=body)
        assert json.loads(endpoint.asked[0][1]) == body
        assert gateway.dispatcher.counts.charged >= 2 * 256

    @pytest.mark.parametrize(
        ("path", "fields", "least"),
        [
            (
                "chat/completions",
                {"messages": [{"role": "user", "content": [{"type": "text", "text": "x" * 800}]}]},
                200,
            ),
            (
                "chat/completions",
                {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:,"}}]}]},
                1000,
            ),
            ("completions", {"prompt": list(range(700))}, 700),
            ("completions", {"prompt": [[1] * 300, [2] * 400]}, 700),
            ("embeddings", {"input": [list(range(700))]}, 700),
        ],
        ids=["parts", "an image alone", "token numbers", "prompts of token numbers", "token numbers to embed"],
    )
    async def test_of_any_shape_is_passed_on_and_paid_for(self, gateway, endpoint, path, fields, least):
        async with tenant(gateway) as client:
            await client.post(f"/{path}", cast_to=object, body={"model": "sim", **fields})
        assert json.loads(endpoint.asked[0][1]) == {"model": "sim", **fields}
        assert gateway.dispatcher.counts.charged >= least

    async def test_to_embed_many_long_texts_is_served(self):
        texts = ["word " * 2000] * 64
        async with (
            running_engine() as engine,
            running_gateway(pool_over(engine.url)) as gateway,
            tenant(gateway) as client,
        ):
            answer = await client.embeddings.create(model="sim", input=texts)
        assert sum(map(len, texts)) == 640_000
        assert len(answer.data) == 64


class TestWhoeverIsNotKnown:
    async def test_leaves_no_state_and_no_label(self, gateway, endpoint):
        def labels(text):
            return {line.rpartition(" ")[0] for line in text.splitlines() if "model_not_found" not in line}

        async with tenant(gateway) as client, tenant(gateway, api_key="nobody's") as nobody:
            for one in (client, nobody):
                with pytest.raises(openai.APIStatusError):
                    await ask(one, model="none")
            before = (await gateway.admin("/metrics")).text
            for _ in range(50):
                strange = secrets.token_hex(8)
                with pytest.raises(openai.NotFoundError):
                    await ask(client, model=strange, user=strange)
                with pytest.raises(openai.AuthenticationError):
                    await ask(nobody, extra_headers={"x-tenant": strange, "x-fairpool-tenant": strange}, user=strange)
            after = (await gateway.admin("/metrics")).text
        assert labels(before) == labels(after)
        assert not list(gateway.dispatcher.ordering.meters())
        assert not gateway.dispatcher.estimator._tenants
        assert not endpoint.asked


class TestCredentials:
    async def test_of_one_tenant_are_several_while_they_rotate(self, endpoint):
        ended = {"digest": digest_of("first"), "notAfter": "2020-01-01T00:00:00Z"}
        keys = [{"digest": digest_of("second")}, {"digest": digest_of("third"), "notAfter": "2999-01-01T00:00:00Z"}]
        tenants = [{"name": "a", "keys": [ended, *keys]}]
        async with running_gateway(pool_over(endpoint.url, tenants=tenants)) as gateway:
            for key in ("second", "third"):
                async with tenant(gateway, api_key=key) as client:
                    await ask(client)
            async with tenant(gateway, api_key="first") as client:
                with pytest.raises(openai.AuthenticationError, match="ended at 2020-01-01"):
                    await ask(client)
            used = (await gateway.admin("/debug/keys")).json()["keys"]
            assert [each["last_used"] is not None for each in used] == [False, True, True]
            assert gateway.gateway.tally_of("a").outcomes["answered"] == 2

    @pytest.mark.parametrize("form", ["Authorization: Bearer {}", "X-Api-Key: {}", "Api-Key: {}"])
    async def test_of_a_tenant_never_reach_the_engine_and_the_engines_own_does(self, endpoint, tmp_path, form):
        file = tmp_path / "engine"
        file.write_text("engine-own")
        pool = pool_over(endpoint.url, endpointCredential={"fromFile": str(file)})
        async with running_gateway(pool) as gateway, wire(gateway) as line:
            claims = (b"X-FairPool-Tenant: b", b"x-fairpool-weight: 1000", b"Cookie: " + key_of("a").encode())
            given = form.format(key_of("a")).encode()
            await line.send(request_bytes(None, given, *claims, name=None, target=f"/v1/completions?k={key_of('a')}"))
            assert (await line.answer())[0] == 200
        head = endpoint.asked[0][0]
        assert b"authorization: Bearer engine-own\r\n" in head
        assert head.lower().count(b"authorization") == 1
        assert key_of("a").encode() not in head
        assert b"fairpool" not in head.lower()

    async def test_of_the_engine_goes_with_an_upload_too(self, endpoint, tmp_path):
        file = tmp_path / "engine"
        file.write_text("engine-own")
        pool = pool_over(endpoint.url, endpointCredential={"fromFile": str(file)})
        endpoint.answer = b'{"text": "hello"}'
        async with running_gateway(pool) as gateway, tenant(gateway) as client:
            told = await client.audio.transcriptions.create(model="sim", file=("a.wav", b"RIFF" * 99))
        assert told.text == "hello"
        assert endpoint.header("authorization") == "Bearer engine-own"
        assert endpoint.header("content-type").startswith("multipart/form-data; boundary=")
