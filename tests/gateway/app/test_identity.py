"""Whose a request is, over HTTP: by key or by the word of a proxy, and by nothing else that a client can send."""

import asyncio
import contextlib

import openai
import pytest
from support.config import digest_of, key_of
from support.engine import running_engine
from support.gateway import running_gateway
from support.scripted_endpoint import ScriptedEndpoint, until
from support.tenant import CHAT, QUESTION, pool_over, request_bytes, tenant, wire

BEHIND_A_PROXY = {"type": "TrustedHeader", "header": "x-tenant", "proxyCredential": {"digest": digest_of("the proxy")}}


def from_proxy(name):
    return {"x-fairpool-proxy-credential": "the proxy", "x-tenant": name}


@pytest.fixture
async def endpoint():
    async with ScriptedEndpoint.listening() as endpoint:
        yield endpoint


async def ask(client, **fields):
    return await client.chat.completions.create(**{**QUESTION, **fields})


@contextlib.asynccontextmanager
async def waiting(gateway, *clients):
    """Each client's request waits, for the pool has no endpoint; they leave at the end."""
    tasks = []
    for client in clients:
        tasks.append(asyncio.create_task(ask(client)))
        await until(lambda: gateway.dispatcher.admission.waiting == len(tasks))
    try:
        yield tasks
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def tenants_waiting(gateway):
    return {meter.tenant: meter.waiting for meter in gateway.dispatcher.ordering.meters() if meter.waiting}


def assert_refused(told, status, reason):
    assert told.value.status_code == status
    assert told.value.response.headers["x-fairpool-reason"] == told.value.code == reason


class TestAKey:
    @pytest.mark.parametrize("header", ["x-api-key", "api-key"])
    async def test_is_taken_from_any_header_that_clients_use(self, header):
        async with (
            running_engine() as engine,
            running_gateway(pool_over(engine.url)) as gateway,
            tenant(gateway, api_key="not used", default_headers={header: key_of("b")}) as client,
        ):
            await ask(client)
            assert [model.id for model in (await client.models.list()).data] == ["sim"]

    async def test_decides_alone_whatever_else_a_client_says_of_itself(self):
        claims = {"x-tenant": "b", "x-fairpool-tenant": "b", "x-fairpool-proxy-credential": "b", "openai-project": "b"}
        async with running_gateway(pool_over()) as gateway, tenant(gateway, default_headers=claims) as client:
            asking = asyncio.create_task(ask(client, user="b", extra_body={"metadata": {"tenant": "b"}}))
            await until(lambda: gateway.dispatcher.admission.waiting == 1)
            assert tenants_waiting(gateway) == {"a": 1}
            asking.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await asking

    async def test_that_has_ended_is_refused(self):
        keys = [{"name": "old", "digest": digest_of(key_of("a")), "notAfter": "2020-01-01T00:00:00Z"}]
        pool = pool_over(tenants=[{"name": "a", "keys": keys}])
        async with running_gateway(pool) as gateway, tenant(gateway) as client:
            with pytest.raises(openai.AuthenticationError) as told:
                await ask(client)
            assert_refused(told, 401, "unauthenticated")
            assert "This API key ended at 2020-01-01 00:00:00 UTC" in told.value.message

    async def test_shows_when_it_was_last_used_and_nothing_of_itself(self):
        pool = pool_over(
            tenants=[{"name": "a", "keys": [{"name": "2026-q4", "digest": digest_of(key_of("a"))}]}, {"name": "b"}]
        )
        async with running_gateway(pool) as gateway, tenant(gateway) as client:
            await client.models.list()
            shown = await gateway.admin("/debug/keys")
            used, unused = shown.json()["keys"]
            assert (used["tenant"], used["key"], used["not_after"]) == ("a", "2026-q4", None)
            assert used["last_used"].endswith("Z")
            assert (unused["tenant"], unused["last_used"]) == ("b", None)
            assert unused["key"] == digest_of(key_of("b"))[:15] + "..."
            assert key_of("a") not in shown.text
            assert all(digest_of(key_of(name))[7:] not in shown.text for name in "ab")
            gateway.gateway.apply(pool)
            assert (await gateway.admin("/debug/keys")).json()["keys"][0]["last_used"] == used["last_used"]


class TestBehindAProxy:
    async def test_the_tenant_is_whom_the_proxy_names(self):
        pool = pool_over(authentication=BEHIND_A_PROXY)
        async with (
            running_gateway(pool) as gateway,
            tenant(gateway, default_headers=from_proxy("b")) as one,
            tenant(gateway, default_headers=from_proxy("c")) as other,
            waiting(gateway, one, one, other),
        ):
            assert tenants_waiting(gateway) == {"b": 2, "c": 1}

    @pytest.mark.parametrize("headers", [{"x-tenant": "b"}, {**from_proxy("b"), "x-fairpool-proxy-credential": "no"}])
    async def test_nobody_else_can_name_one(self, headers):
        pool = pool_over(authentication=BEHIND_A_PROXY)
        async with running_gateway(pool) as gateway, tenant(gateway, default_headers=headers) as client:
            for attempt in (ask(client), client.models.list()):
                with pytest.raises(openai.AuthenticationError) as told:
                    await attempt
                assert_refused(told, 401, "unauthenticated")

    async def test_who_is_not_listed_is_forbidden(self):
        pool = pool_over(authentication=BEHIND_A_PROXY)
        async with running_gateway(pool) as gateway, tenant(gateway, default_headers=from_proxy("stranger")) as client:
            with pytest.raises(openai.PermissionDeniedError) as told:
                await ask(client)
            assert_refused(told, 403, "forbidden")

    async def test_strangers_beyond_the_bound_share_one_tenant(self):
        pool = pool_over(authentication={**BEHIND_A_PROXY, "unknownTenants": "Admit", "maxTenants": 2}, defaultWeight=7)
        async with contextlib.AsyncExitStack() as stack:
            gateway = await stack.enter_async_context(running_gateway(pool))
            names = ("s1", "s2", "s3", "s4", "a", "s1")
            clients = [
                await stack.enter_async_context(tenant(gateway, default_headers=from_proxy(name))) for name in names
            ]
            await stack.enter_async_context(waiting(gateway, *clients))
            assert tenants_waiting(gateway) == {"s1": 2, "s2": 1, "_other": 2, "a": 1}
            assert gateway.dispatcher.ordering.weight("_other") == 7

    async def test_neither_its_credential_nor_its_users_reaches_an_endpoint(self, endpoint):
        pool = pool_over(endpoint, authentication=BEHIND_A_PROXY)
        async with running_gateway(pool) as gateway, wire(gateway) as line:
            own = (b"X-FairPool-Proxy-Credential: the proxy", b"X-Tenant: a", b"Cookie: session=secret")
            await line.send(request_bytes(None, *own, b"Authorization: Bearer users-token", name=None))
            peer = await endpoint.accept()
            head, _ = await peer.request()
            assert b"the proxy" not in head
            assert b"secret" not in head
            assert b"users-token" not in head
            await peer.answer()


class TestTheEndpointsOwnCredential:
    async def test_is_sent_instead_of_the_tenants(self, tmp_path):
        secret = tmp_path / "engine"
        secret.write_text("engines-own\n")
        async with (
            running_engine(api_key="engines-own") as engine,
            running_gateway(pool_over(engine.url, endpointCredential={"fromFile": str(secret)})) as gateway,
            tenant(gateway) as client,
        ):
            assert (await ask(client)).usage.completion_tokens == 3

    async def test_is_asked_for_by_that_engine(self):
        async with (
            running_engine(api_key="engines-own") as engine,
            running_gateway(pool_over(engine.url)) as gateway,
            tenant(gateway) as client,
        ):
            with pytest.raises(openai.AuthenticationError) as told:
                await ask(client)
            assert "x-fairpool-reason" not in told.value.response.headers

    async def test_may_come_from_the_environment(self, endpoint, monkeypatch):
        monkeypatch.setenv("ENGINE_KEY", "engines-own")
        pool = pool_over(endpoint, endpointCredential={"fromEnvironment": "ENGINE_KEY"})
        async with running_gateway(pool) as gateway, wire(gateway) as line:
            await line.send(request_bytes())
            peer = await endpoint.accept()
            head, _ = await peer.request()
            assert [header for header in head.split(b"\r\n") if header.lower().startswith(b"authorization")] == [
                b"authorization: Bearer engines-own"
            ]
            await peer.answer()


class TestSuspension:
    async def test_of_a_tenant_is_told_to_it_alone(self):
        pool = pool_over(tenants=[{"name": "a", "suspend": True}, {"name": "b"}])
        async with running_gateway(pool) as gateway, tenant(gateway) as client, tenant(gateway, "b") as other:
            for attempt in (ask(client), client.models.list()):
                with pytest.raises(openai.PermissionDeniedError) as told:
                    await attempt
                assert_refused(told, 403, "tenant_suspended")
            await other.models.list()

    async def test_of_a_tenant_ends_what_waits_and_not_what_runs(self):
        async with contextlib.AsyncExitStack() as stack:
            engine = await stack.enter_async_context(running_engine())
            pool = pool_over(engine.url, slots={"perEndpoint": 1})
            gateway = await stack.enter_async_context(running_gateway(pool))
            client = await stack.enter_async_context(tenant(gateway))
            runs = asyncio.create_task(ask(client, max_tokens=300, extra_body={"ignore_eos": True}))
            await until(lambda: gateway.in_flight == 1)
            waits = asyncio.create_task(ask(client))
            await until(lambda: gateway.dispatcher.admission.waiting == 1)
            tenants = [{"name": "a", "suspend": True}]
            gateway.gateway.apply(pool_over(engine.url, slots={"perEndpoint": 1}, tenants=tenants))
            with pytest.raises(openai.PermissionDeniedError) as told:
                await waits
            assert_refused(told, 403, "tenant_suspended")
            assert (await runs).usage.completion_tokens == 300
            assert gateway.dispatcher.counts.dispatched == 1

    async def test_of_the_pool_is_a_503_that_says_when_to_retry(self):
        async with (
            running_gateway(pool_over()) as gateway,
            tenant(gateway) as client,
            waiting(gateway, client) as [task],
        ):
            gateway.gateway.apply(pool_over(suspend=True))
            for attempt in (task, ask(client)):
                with pytest.raises(openai.InternalServerError) as told:
                    await attempt
                assert_refused(told, 503, "pool_suspended")
                assert 40 <= int(told.value.response.headers["retry-after"]) <= 60
            await client.models.list()
            assert gateway.outcomes == {"pool_suspended": 2, "answered": 1}

    async def test_of_the_pool_reads_no_body(self):
        async with running_gateway(pool_over(suspend=True)) as gateway, wire(gateway) as line:
            await line.send(b"POST %b HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n" % CHAT.encode())
            await line.send(b"Authorization: Bearer %b\r\n\r\n" % key_of("a").encode())
            assert (await line.answer())[0] == 503


async def test_retry_after_is_not_the_same_for_all_who_are_refused_together():
    async with running_gateway(pool_over(suspend=True)) as gateway, tenant(gateway) as client:
        told = set()
        for _ in range(30):
            with pytest.raises(openai.InternalServerError) as refused:
                await ask(client)
            told.add(int(refused.value.response.headers["retry-after"]))
    assert len(told) > 3
    assert told <= set(range(40, 61))
