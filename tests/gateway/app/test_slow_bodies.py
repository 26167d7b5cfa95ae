"""Bodies that stop coming hold no place for ever; those that come slowly but steadily are read to their end."""

import asyncio
import contextlib
import json

import pytest
from support.engine import running_engine
from support.gateway import running_gateway
from support.scripted_endpoint import ScriptedEndpoint, until
from support.tenant import QUESTION, pool_over, request_bytes, wire

from fairpool_gateway.app import protocol
from fairpool_gateway.app.protocol import BODY_BYTES

SECONDS = 0.3


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(protocol, "BODY_SECONDS", SECONDS)


@pytest.fixture
async def gateway():
    async with running_engine() as engine, running_gateway(pool_over(engine.url)) as running:
        yield running


def question(size):
    return json.dumps({**QUESTION, "messages": [{"role": "user", "content": "x" * size}]}).encode()


class TestABodyThatStops:
    @pytest.mark.parametrize("part", [0, 1000, 100_000], ids=["at once", "soon", "late"])
    async def test_is_refused_with_408_and_its_connection_closed(self, gateway, part):
        head, body = request_bytes(question(200_000)).split(b"\r\n\r\n")
        async with wire(gateway) as tenant:
            await tenant.send(head + b"\r\n\r\n" + body[:part])
            if part:
                await until(lambda: gateway.dispatcher.admission.bytes == part)
            status, headers, answer = await tenant.answer()
            assert status == 408
            assert dict(headers)[b"x-fairpool-reason"] == b"body_timeout"
            assert dict(headers)[b"connection"] == b"close"
            assert json.loads(answer)["error"]["code"] == "body_timeout"
            assert await tenant.rest() == b""
        assert gateway.dispatcher.admission.bytes == 0
        assert gateway.outcomes["body_timeout"] == 1

    async def test_is_refused_though_it_drips(self, gateway):
        head, body = request_bytes(question(200_000), framing=b"Transfer-Encoding: chunked").split(b"\r\n\r\n")
        async with wire(gateway) as tenant:

            async def drip():
                await tenant.send(head + b"\r\n\r\n")
                for byte in body:
                    await tenant.send(b"1;and=more\r\n%c\r\n" % byte)
                    await asyncio.sleep(SECONDS / 20)

            dripping = asyncio.create_task(drip())
            assert (await tenant.answer())[0] == 408
            dripping.cancel()

    async def test_after_it_was_refused_ends_the_connection(self, gateway):
        async with wire(gateway) as tenant:
            await tenant.send(request_bytes(question(100_000), name=None)[:50_000])
            assert (await tenant.answer())[0] == 401
            assert await tenant.rest() == b""

    async def test_after_it_was_refused_brings_no_more_time_by_going_on(self, gateway):
        head, _ = request_bytes(b"x" * (1 << 20), name=None).split(b"\r\n\r\n")
        async with wire(gateway) as tenant:
            await tenant.send(head + b"\r\n\r\n")
            assert (await tenant.answer())[0] == 401

            async def go_on():
                while True:
                    await tenant.send(b"x" * BODY_BYTES)
                    await asyncio.sleep(SECONDS / 5)

            going_on = asyncio.create_task(go_on())
            assert await tenant.rest() == b""
            going_on.cancel()
            await asyncio.gather(going_on, return_exceptions=True)


@contextlib.asynccontextmanager
async def scripted():
    async with (
        ScriptedEndpoint.listening() as endpoint,
        running_gateway(pool_over(endpoint)) as gateway,
        wire(gateway) as tenant,
    ):
        yield endpoint, tenant


async def test_a_body_that_comes_slowly_but_steadily_is_read_to_its_end():
    whole = request_bytes(question(12 * BODY_BYTES))
    async with scripted() as (endpoint, tenant):
        for at in range(0, len(whole), BODY_BYTES):
            await tenant.send(whole[at : at + BODY_BYTES])
            await asyncio.sleep(SECONDS / 6)
        peer = await endpoint.accept()
        await peer.request()
        await peer.answer()
        assert (await tenant.answer())[0] == 200


async def test_a_body_is_not_late_while_it_is_not_taken_behind_a_request_in_flight():
    whole = request_bytes(question(300_000))
    async with scripted() as (endpoint, tenant):
        await tenant.send(request_bytes())
        peer = await endpoint.accept()
        await peer.request()
        await tenant.send(whole[:200_000])
        await asyncio.sleep(2.5 * SECONDS)
        await peer.answer()
        assert (await tenant.answer())[0] == 200
        await tenant.send(whole[200_000:])
        await peer.request()
        await peer.answer()
        assert (await tenant.answer())[0] == 200
