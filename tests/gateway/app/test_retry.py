"""A request whose endpoint fails before its first byte goes elsewhere, or gets what was said last."""

import asyncio
import contextlib

import openai
import pytest
from support.config import key_of, pool_config
from support.engine import running_engine
from support.gateway import running_gateway
from support.scripted_endpoint import ScriptedEndpoint, refusing_port, until


def pool(*urls, **fields):
    return pool_config(
        models=["sim"],
        tenants=[{"name": "a"}, {"name": "b"}],
        endpoints=[{"name": f"e{number}", "url": url} for number, url in enumerate(urls)],
        **fields,
    )


@contextlib.asynccontextmanager
async def tenant(gateway, name="a"):
    async with openai.AsyncOpenAI(base_url=f"{gateway.url}/v1", api_key=key_of(name), max_retries=0) as client:
        yield client


async def ask(client, **extra):
    return await client.chat.completions.create(
        model="sim", messages=[{"role": "user", "content": "hello"}], max_tokens=3, **extra
    )


def refusing_url():
    target = refusing_port()
    return f"http://{target.host}:{target.port}"


async def test_an_endpoint_that_refuses_connections_is_passed_over_and_taken_out():
    async with running_engine() as engine, running_gateway(pool(refusing_url(), engine.url)) as gateway:
        async with tenant(gateway) as client:
            for _ in range(3):
                assert (await ask(client)).usage.completion_tokens == 3
        sick, _ = gateway.dispatcher.endpoints
        assert sick.is_out
        assert gateway.dispatcher.counts.retried == 1
        assert gateway.in_flight == 0


async def test_with_nobody_else_left_the_tenant_is_told_502():
    async with running_gateway(pool(refusing_url())) as gateway, tenant(gateway) as client:
        with pytest.raises(openai.InternalServerError) as told:
            await ask(client)
        assert told.value.status_code == 502
        assert told.value.response.headers["x-fairpool-reason"] == "upstream_failed"


async def test_a_503_is_tried_elsewhere():
    async with (
        running_engine(fault="503") as overloaded,
        running_engine() as engine,
        running_gateway(pool(overloaded.url, engine.url)) as gateway,
        tenant(gateway) as client,
    ):
        assert (await ask(client)).usage.completion_tokens == 3


async def test_when_all_say_503_the_last_answer_goes_out_as_it_is():
    async with (
        running_engine(fault="503") as one,
        running_engine(fault="503") as other,
        running_gateway(pool(one.url, other.url)) as gateway,
        tenant(gateway) as client,
    ):
        with pytest.raises(openai.InternalServerError) as told:
            await ask(client)
        assert told.value.status_code == 503
        assert "x-fairpool-reason" not in told.value.response.headers
        assert gateway.dispatcher.counts.retried == 1
        assert gateway.in_flight == 0


async def test_a_503_goes_out_when_the_next_endpoint_cannot_be_reached():
    async with (
        running_engine(fault="503") as engine,
        running_gateway(pool(engine.url, refusing_url())) as gateway,
        tenant(gateway) as client,
    ):
        with pytest.raises(openai.InternalServerError) as told:
            await ask(client)
        assert told.value.status_code == 503
        assert "x-fairpool-reason" not in told.value.response.headers


async def test_an_answer_that_a_later_one_replaces_is_let_go():
    async with (
        ScriptedEndpoint.listening() as one,
        ScriptedEndpoint.listening() as other,
        running_gateway(pool(f"http://{one.target}", f"http://{other.target}")) as gateway,
        tenant(gateway) as client,
    ):
        asking = asyncio.create_task(ask(client))
        first, second = [await say_half_of_a_503(endpoint) for endpoint in (one, other)]
        await first.gone()
        await second.send(b"half")
        with pytest.raises(openai.InternalServerError) as told:
            await asking
        assert told.value.response.text == "halfhalf"
        assert gateway.in_flight == 0


async def say_half_of_a_503(endpoint):
    peer = await endpoint.accept()
    await peer.request()
    await peer.send(b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 8\r\n\r\nhalf")
    return peer


async def test_a_500_is_the_engines_answer_and_is_not_tried_again():
    async with (
        running_engine(fault="500") as engine,
        running_engine() as other,
        running_gateway(pool(engine.url, other.url)) as gateway,
        tenant(gateway) as client,
    ):
        with pytest.raises(openai.InternalServerError) as told:
            await ask(client)
        assert told.value.status_code == 500
        assert gateway.dispatcher.counts.retried == 0


async def test_an_endpoint_that_closes_connections_between_requests_costs_nobody_anything():
    """Without a word of it in its answers: each request that goes on a used connection crosses with its end."""

    async def close_after_an_answer(peer):
        await peer.request()
        await peer.answer(b"{}", headers=b"content-type: application/json\r\n")
        await peer.request()
        peer.reset()

    async def accept(endpoint):
        async with asyncio.TaskGroup() as connections:
            while True:
                connections.create_task(close_after_an_answer(await endpoint.accept()))

    async with (
        ScriptedEndpoint.listening() as endpoint,
        running_gateway(pool(f"http://{endpoint.target}")) as gateway,
        tenant(gateway) as client,
    ):
        accepting = asyncio.create_task(accept(endpoint))
        for _ in range(20):
            await ask(client)
        accepting.cancel()
        assert (gateway.outcomes, endpoint.accepted) == ({"answered": 20}, 20)


@pytest.mark.parametrize("crashed", ["closes", "is gone"])
async def test_a_request_that_kills_engines_kills_two_at_most(crashed):
    """Over connections that were used before, which might have been closed while they were idle."""
    killed = []

    async def serve(endpoint, peer):
        await peer.request()
        while gateway.dispatcher.counts.dispatched <= 3:
            await peer.answer(b"{}", headers=b"content-type: application/json\r\n")
            await peer.request()
        killed.append(endpoint)
        if crashed == "is gone":
            endpoint.listener.close()
        peer.end()

    async def accept(endpoint):
        async with asyncio.TaskGroup() as connections:
            while True:
                connections.create_task(serve(endpoint, await endpoint.accept()))

    async with contextlib.AsyncExitStack() as stack:
        endpoints = [await stack.enter_async_context(ScriptedEndpoint.listening()) for _ in range(3)]
        gateway = await stack.enter_async_context(running_gateway(pool()))
        client = await stack.enter_async_context(tenant(gateway))
        serving = [asyncio.create_task(accept(endpoint)) for endpoint in endpoints]
        for endpoint in endpoints:
            gateway.gateway.apply(pool(f"http://{endpoint.target}"))
            await ask(client)
        gateway.gateway.apply(pool(*(f"http://{endpoint.target}" for endpoint in endpoints)))
        with pytest.raises(openai.InternalServerError) as told:
            await ask(client)
        assert told.value.response.headers["x-fairpool-reason"] == "upstream_failed"
        assert len(killed) == 2
        assert gateway.in_flight == 0
        for task in serving:
            task.cancel()
        await asyncio.wait(serving)


async def test_a_tenant_that_leaves_while_it_waits_for_its_second_try_costs_nobody_anything():
    async with (
        running_engine() as engine,
        running_gateway(pool(refusing_url(), engine.url, slots={"perEndpoint": 1})) as gateway,
        tenant(gateway) as client,
        tenant(gateway, "b") as other,
    ):
        sick, well = gateway.dispatcher.endpoints
        slot = well.take(1)
        tries = asyncio.create_task(ask(other))
        await until(lambda: gateway.dispatcher.retrying == 1)
        tries.cancel()
        await until(lambda: gateway.dispatcher.retrying == 0)
        assert sick.in_flight == 0
        slot.give_back()
        assert (await ask(client)).usage.completion_tokens == 3
        await until(lambda: gateway.in_flight == 0)


async def test_a_tenant_that_leaves_during_its_second_try_frees_the_slot():
    async with (
        running_engine() as engine,
        running_gateway(pool(refusing_url(), engine.url, slots={"perEndpoint": 1})) as gateway,
        tenant(gateway) as client,
        tenant(gateway, "b") as other,
    ):
        tries = asyncio.create_task(ask(other, extra_headers={"x-engine-fault": "hang-before"}))
        await until(lambda: gateway.dispatcher.counts.retried == 1)
        tries.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await tries
        assert (await ask(client)).usage.completion_tokens == 3
        assert gateway.in_flight == 0
