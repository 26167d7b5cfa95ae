"""Connections that send nothing, half a head or an endless one: bounded in size, time and number."""

import asyncio
import contextlib
import gc
import json

import pytest
from support.engine import running_engine
from support.gateway import running_gateway
from support.scripted_endpoint import PATIENCE, ScriptedEndpoint, until
from support.tenant import QUESTION, pool_over, request_bytes, wire

from fairpool_gateway.app import protocol
from fairpool_gateway.app.connection import TenantConnection
from fairpool_gateway.app.protocol import MAX_FIELDS, MAX_HEAD, MOST_BEHIND

JSON = b"Content-Type: application/json"
GOOD = request_bytes(None, JSON)


@pytest.fixture
async def gateway():
    async with running_engine() as engine, running_gateway(pool_over(engine.url)) as running:
        yield running


@contextlib.asynccontextmanager
async def request_in_flight():
    """A tenant's connection with a request that its endpoint has and does not answer."""
    async with (
        ScriptedEndpoint.listening() as endpoint,
        running_gateway(pool_over(endpoint)) as gateway,
        wire(gateway) as tenant,
    ):
        await tenant.send(GOOD)
        peer = await endpoint.accept()
        await peer.request()
        yield tenant, peer


async def status(tenant):
    answer = await tenant.answer()
    return answer[0]


async def floods(tenant):
    """Send without end until the gateway ends the connection."""
    async with asyncio.timeout(PATIENCE):
        with contextlib.suppress(ConnectionError):
            while True:
                await tenant.send(b"b" * (8 << 10))
                await asyncio.sleep(0)
    await tenant.rest()


class TestSize:
    async def test_a_head_above_the_bound_is_answered_with_431_and_the_connection_closed(self, gateway):
        async with wire(gateway) as tenant:
            await tenant.send(request_bytes(b"", b"x-long: " + b"y" * MAX_HEAD)[: MAX_HEAD + 1])
            assert await status(tenant) == 431
            assert await tenant.rest() == b""

    async def test_so_is_one_that_comes_whole_with_its_body(self, gateway):
        async with wire(gateway) as tenant:
            await tenant.send(request_bytes(None, JSON, b"x-long: " + b"y" * MAX_HEAD))
            assert await status(tenant) == 431
            assert await tenant.rest() == b""

    @pytest.mark.parametrize("long", [MAX_HEAD // 2, MAX_HEAD, 2 * MAX_HEAD])
    async def test_what_a_request_asks_for_is_a_part_of_its_head(self, gateway, long):
        whole = request_bytes(None, JSON, b"x-long: " + b"y" * (MAX_HEAD // 2))
        async with wire(gateway) as tenant:
            await tenant.send(whole.replace(b" HTTP/1.1\r\n", b"?" + b"z" * long + b" HTTP/1.1\r\n", 1))
            assert await status(tenant) == 431
            assert await tenant.rest() == b""

    async def test_a_large_body_that_comes_with_its_head_is_no_part_of_it(self, gateway):
        async with wire(gateway) as tenant:
            await tenant.send(request_bytes(json.dumps(QUESTION).encode() + b" " * (2 * MAX_HEAD), JSON))
            assert await status(tenant) == 200

    async def test_so_is_an_endless_head_in_small_pieces_on_a_connection_that_was_good(self, gateway):
        async with wire(gateway) as tenant:
            await tenant.send(GOOD)
            assert await status(tenant) == 200
            await tenant.send(b"POST /v1/chat/completions HTTP/1.1\r\n")
            for number in range(MAX_HEAD // 16 + 1):
                await tenant.send(b"x-%06d: value\r\n" % number)
            assert await status(tenant) == 431

    async def test_behind_a_request_in_flight_it_ends_the_connection(self):
        async with request_in_flight() as (tenant, peer):
            await tenant.send(b"POST /v1/chat/completions HTTP/1.1\r\n")
            await tenant.send(b"x-long: " + b"y" * MAX_HEAD)
            await peer.gone()
            assert await tenant.rest() == b""

    async def test_the_body_of_a_request_that_was_refused_is_no_head(self, gateway):
        async with wire(gateway) as tenant:
            head, body = request_bytes(b"x" * (4 * MAX_HEAD), name=None).split(b"\r\n\r\n")
            await tenant.send(head + b"\r\n\r\n")
            assert await status(tenant) == 401
            await tenant.send(body + GOOD)
            assert await status(tenant) == 200

    async def test_a_head_of_too_many_fields_is_too_large(self, gateway):
        async with wire(gateway) as tenant:
            await tenant.send(request_bytes(None, *[b"a:%d" % number for number in range(MAX_FIELDS)]))
            assert await status(tenant) == 431
            assert await tenant.rest() == b""

    async def test_trailers_are_dropped_and_endless_ones_end_the_connection(self, gateway):
        head, _ = request_bytes(b"", JSON, framing=b"Transfer-Encoding: chunked").split(b"\r\n\r\n")
        body = request_bytes().split(b"\r\n\r\n")[1]
        chunked = head + b"\r\n\r\n%x\r\n%b\r\n0\r\n" % (len(body), body)
        async with wire(gateway) as tenant:
            await tenant.send(chunked + b"Content-Encoding: gzip\r\n\r\n")
            assert await status(tenant) == 200
            await tenant.send(chunked + b"a: ")
            await floods(tenant)

    async def test_so_does_an_endless_extension_of_a_chunk(self, gateway):
        head, _ = request_bytes(b"", JSON, framing=b"Transfer-Encoding: chunked").split(b"\r\n\r\n")
        async with wire(gateway) as tenant:
            await tenant.send(head + b"\r\n\r\n1;a=")
            await floods(tenant)

    async def test_a_head_just_below_it_is_served(self, gateway):
        async with wire(gateway) as tenant:
            await tenant.send(request_bytes(None, JSON, b"x-long: " + b"y" * (MAX_HEAD - 1000)))
            assert await status(tenant) == 200


class TestTime:
    @pytest.fixture(autouse=True)
    def quick(self, monkeypatch):
        monkeypatch.setattr(protocol, "HEAD_SECONDS", 0.2)

    @pytest.mark.parametrize("sent", [b"", GOOD[:40]], ids=["nothing", "half a head"])
    async def test_a_connection_that_sends_no_more_is_closed(self, gateway, sent):
        async with wire(gateway) as tenant:
            await tenant.send(sent)
            assert await tenant.rest() == b""

    async def test_so_is_half_a_head_after_a_whole_request(self, gateway):
        async with wire(gateway) as tenant:
            await tenant.send(GOOD)
            assert await status(tenant) == 200
            await tenant.send(GOOD[:40])
            assert await tenant.rest() == b""

    async def test_a_kept_connection_may_be_idle_for_longer_and_a_body_may_take_its_time(self, gateway):
        async with wire(gateway) as tenant:
            await tenant.send(GOOD)
            assert await status(tenant) == 200
            await asyncio.sleep(0.4)
            head, body = GOOD.split(b"\r\n\r\n")
            await tenant.send(head + b"\r\n\r\n")
            await asyncio.sleep(0.4)
            await tenant.send(body)
            assert await status(tenant) == 200

    async def test_a_line_end_too_many_ends_no_request_that_takes_its_time(self):
        async with request_in_flight() as (tenant, peer):
            await tenant.send(b"\r\n")
            await asyncio.sleep(0.4)
            await peer.answer()
            assert await status(tenant) == 200


class TestRequestsBehindOneInFlight:
    async def test_are_answered_in_order(self, gateway):
        async with wire(gateway) as tenant:
            await tenant.send(GOOD * (1 + MOST_BEHIND))
            assert [await status(tenant) for _ in range(1 + MOST_BEHIND)] == [200] * (1 + MOST_BEHIND)

    async def test_beyond_what_is_taken_they_end_the_connection_after_the_others_are_answered(self, gateway):
        async with wire(gateway) as tenant:
            await tenant.send(GOOD * (3 + MOST_BEHIND))
            assert [await status(tenant) for _ in range(1 + MOST_BEHIND)] == [200] * (1 + MOST_BEHIND)
            assert await tenant.rest() == b""

    async def test_that_nobody_waits_for_any_more_are_never_begun(self):
        async with request_in_flight() as (tenant, peer):
            await tenant.send(GOOD * 3)
            tenant.leave()
            await peer.gone()


class TestWhatIsLeft:
    async def nothing_asked(self, tenant):
        await tenant.send(b"")

    async def half_a_head(self, tenant):
        await tenant.send(GOOD[:40])

    async def too_large(self, tenant):
        await tenant.send(b"GET / HTTP/1.1\r\nx: " + b"y" * MAX_HEAD)
        assert await status(tenant) == 431

    async def answered(self, tenant):
        await tenant.send(GOOD)
        assert await status(tenant) == 200

    async def refused(self, tenant):
        await tenant.send(request_bytes(b"x" * (4 * MAX_HEAD), name=None)[: 2 * MAX_HEAD])
        assert await status(tenant) == 401

    async def half_a_body(self, tenant):
        await tenant.send(request_bytes(b"x" * (4 * MAX_HEAD))[: 2 * MAX_HEAD])

    async def several(self, tenant):
        await tenant.send(GOOD * 3)
        await tenant.head()

    @pytest.mark.parametrize(
        "way", ["nothing_asked", "half_a_head", "too_large", "answered", "refused", "half_a_body", "several"]
    )
    async def test_a_connection_leaves_no_work_for_the_garbage_collector(self, gateway, way):
        gc.collect()
        gc.disable()
        try:
            async with wire(gateway) as tenant:
                await until(connections)
                await getattr(self, way)(tenant)
            await until(lambda: not connections())
        finally:
            gc.enable()


def connections():
    """The tenants' connections that exist, whether anybody still needs them or not."""
    return [each for each in gc.get_objects() if type(each) is TenantConnection]


async def test_beyond_the_bound_new_connections_are_closed_and_old_ones_served():
    async with (
        running_engine() as engine,
        running_gateway(pool_over(engine.url), most_connections=1) as gateway,
        wire(gateway) as old,
    ):
        await old.send(GOOD)
        assert await status(old) == 200
        async with wire(gateway) as late:
            assert await late.rest() == b""
        await old.send(GOOD)
        assert await status(old) == 200
