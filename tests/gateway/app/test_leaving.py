"""A tenant that leaves ends its request at once, wherever that is, and costs nobody else anything."""

import asyncio
import contextlib
import json

import pytest
from support.engine import running_engine
from support.gateway import running_gateway, start, stop
from support.scripted_endpoint import PATIENCE, ScriptedEndpoint, until
from support.tenant import QUESTION, pool_over, request_bytes, wire

from fairpool_gateway.app.connection import connection_of
from fairpool_gateway.app.server import http_server

STREAM = json.dumps({**QUESTION, "stream": True}).encode()
LONG = json.dumps({**QUESTION, "stream": True, "max_tokens": 500, "ignore_eos": True}).encode()
LARGE = json.dumps({**QUESTION, "messages": [{"role": "user", "content": "x" * 200_000}]}).encode()
JSON = b"Content-Type: application/json"
EVENTS = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"


@pytest.fixture
async def endpoint():
    async with ScriptedEndpoint.listening() as endpoint:
        yield endpoint


@pytest.fixture
async def gateway(endpoint):
    async with running_gateway(pool_over(endpoint, slots={"perEndpoint": 1})) as gateway:
        yield gateway


def nothing_is_left(gateway):
    return gateway.in_flight == 0 and gateway.dispatcher.admission.waiting == 0 and not gateway.gateway.broker._waiters


@contextlib.asynccontextmanager
async def running_request(gateway, endpoint, body=None):
    """A tenant's connection and the endpoint's, with a request on its way."""
    async with wire(gateway) as line:
        whole = request_bytes(body, b"Expect: 100-continue")
        head, body = whole.split(b"\r\n\r\n")
        await line.send(head + b"\r\n\r\n")
        await line.until(b"100 Continue\r\n\r\n")
        sending = asyncio.create_task(line.send(body))
        peer = await endpoint.accept()
        await peer.request()
        await sending
        assert gateway.in_flight == 1
        yield line, peer


class TestWhileItRuns:
    @pytest.mark.parametrize("body", [None, STREAM, LARGE], ids=["unary", "stream", "large"])
    async def test_before_any_answer(self, gateway, endpoint, body):
        async with running_request(gateway, endpoint, body) as (line, peer):
            line.leave()
            await peer.gone()
            await until(lambda: nothing_is_left(gateway))

    @pytest.mark.parametrize("body", [None, STREAM], ids=["unary", "stream"])
    async def test_between_headers_and_the_first_byte(self, gateway, endpoint, body):
        async with running_request(gateway, endpoint, body) as (line, peer):
            await peer.send(EVENTS)
            line.leave()
            await peer.gone()
            await until(lambda: nothing_is_left(gateway))

    async def test_in_the_middle_of_a_stream(self, gateway, endpoint):
        async with running_request(gateway, endpoint, STREAM) as (line, peer):
            await peer.send(EVENTS + b"a\r\ndata: {}\n\n\r\n")
            await line.until(b"data: {}\n\n")
            line.leave()
            await peer.gone()
            await until(lambda: nothing_is_left(gateway))

    async def test_while_an_endpoint_is_being_connected_to(self, endpoint):
        config = pool_over(endpoint, timeouts={"connect": "1h"})
        async with running_gateway(config) as gateway, wire(gateway) as line:
            connecting = asyncio.Event()

            async def never(target, within):
                connecting.set()
                await asyncio.Event().wait()

            gateway.gateway.client._connect = never
            await line.send(request_bytes())
            await connecting.wait()
            line.leave()
            await until(lambda: nothing_is_left(gateway))

    async def test_the_slot_goes_to_whoever_waits(self, gateway, endpoint):
        async with running_request(gateway, endpoint) as (line, peer), wire(gateway) as other:
            await other.send(request_bytes(name="b"))
            await until(lambda: gateway.dispatcher.admission.waiting == 1)
            line.leave()
            await peer.gone()
            next_peer = await endpoint.accept()
            await next_peer.request()
            await next_peer.answer(b"served")
            assert (await other.answer())[2] == b"served"

    async def test_it_teaches_nothing_but_stays_charged(self, gateway, endpoint):
        async with running_request(gateway, endpoint) as (line, _):
            line.leave()
            await until(lambda: nothing_is_left(gateway))
        assert gateway.dispatcher.counts.charged > 0
        assert gateway.dispatcher.counts.used == 0
        assert not gateway.dispatcher.estimator._tenants


class TestWhileItWaits:
    @pytest.mark.parametrize("body", [None, STREAM, LARGE], ids=["unary", "stream", "large"])
    async def test_its_place_is_free_at_once_and_it_is_not_charged(self, gateway, endpoint, body):
        async with running_request(gateway, endpoint) as (first, peer), wire(gateway) as line:
            charged = gateway.dispatcher.counts.charged
            await line.send(request_bytes(body, name="b"))
            await until(lambda: gateway.dispatcher.admission.waiting == 1)
            line.leave()
            await until(lambda: gateway.dispatcher.admission.waiting == 0)
            await peer.answer(b"undisturbed")
            assert (await first.answer())[2] == b"undisturbed"
            counts = gateway.dispatcher.counts
            assert (counts.dispatched, counts.removed, counts.charged) == (1, 1, charged)
            assert nothing_is_left(gateway)


class TestHalfClosing:
    """A tenant that says that it will send no more has left, as it has for other servers: most who do so are gone."""

    async def test_while_it_runs(self, gateway, endpoint):
        async with running_request(gateway, endpoint) as (line, peer):
            line.end_sending()
            await peer.gone()
            assert await line.rest() == b""
            await until(lambda: nothing_is_left(gateway))

    async def test_while_it_waits(self, gateway, endpoint):
        async with running_request(gateway, endpoint), wire(gateway) as line:
            await line.send(request_bytes(name="b"))
            await until(lambda: gateway.dispatcher.admission.waiting == 1)
            line.end_sending()
            await until(lambda: gateway.dispatcher.admission.waiting == 0)
            assert await line.rest() == b""


class TestBeforeItIsWhole:
    async def test_half_a_body_makes_no_state(self, gateway):
        async with wire(gateway) as line:
            await line.send(request_bytes(b"{", framing=b"Content-Length: 100"))
            line.leave()
        assert gateway.dispatcher.counts.arrived == 0


async def test_tenants_that_close_their_side_together_with_their_requests_are_answered(gateway):
    async with contextlib.AsyncExitStack() as stack:
        lines = [await stack.enter_async_context(wire(gateway)) for _ in range(8)]
        for line in lines:
            await line.send(request_bytes(name=None))
            line.end_sending()
        for line in lines:
            assert (await line.rest()).startswith(b"HTTP/1.1 401 ")


async def test_whoever_begins_to_watch_a_connection_that_is_lost_is_told_at_once():
    told = asyncio.Queue()

    async def application(scope, receive, send):
        connection, lost = connection_of(scope), asyncio.Event()
        connection.watch(lost.set)
        await lost.wait()
        connection.watch(lambda: told.put_nowait("at once"))

    server = http_server(application)
    _, writer = await asyncio.open_connection("127.0.0.1", await start(server))
    writer.write(request_bytes())
    writer.write_eof()
    assert await asyncio.wait_for(told.get(), PATIENCE) == "at once"
    writer.close()
    await stop(server)


async def test_in_a_pool_that_carries_it_owes_what_its_stream_was_seen_to_use(endpoint):
    so_far = b'"usage": {"prompt_tokens": 5000, "completion_tokens": 900}'
    event = b'data: {"choices": [{"delta": {"content": "x"}}], %b}\n\n' % so_far
    pool = pool_over(endpoint, slots={"perEndpoint": 1}, cost={"carry": True})
    async with running_gateway(pool) as gateway, wire(gateway) as other:
        async with running_request(gateway, endpoint, STREAM) as (line, peer):
            (leaving,) = gateway.dispatcher.tallies.of("a").dispatches
            await other.send(request_bytes(name="b"))
            await until(lambda: gateway.dispatcher.ordering.waiting == 1)
            await peer.send(EVENTS + b"%x\r\n%b\r\n" % (len(event), event))
            await line.until(b"\n\n")
            line.leave()
            await peer.gone()
        await until(lambda: gateway.dispatcher.ordering.waiting == 0)
        owed = 5000 + 2 * 900 - leaving.estimate
        shown = {each["tenant"]: each["debt"] for each in (await gateway.admin("/debug/tenants")).json()["tenants"]}
        assert (shown["a"], shown["b"], shown["_other"]) == (owed, 0, 0)
        assert b'fairpool_debt_tokens{tenant="a"} %.1f' % owed in (await gateway.admin("/metrics")).content
        other.leave()
        await until(lambda: nothing_is_left(gateway))


async def test_a_tenant_that_leaves_after_its_answer_disturbs_nothing(gateway, endpoint):
    async with running_request(gateway, endpoint) as (line, peer):
        await peer.answer()
        await line.answer()
        line.leave()
        async with wire(gateway) as other:
            await other.send(request_bytes())
            await peer.request()
            await peer.answer(b"again")
            assert (await other.answer())[2] == b"again"


async def test_in_a_crowd_that_comes_and_goes_every_slot_comes_back():
    """Some leave while they wait, some while they run, the others are all served; the engine is left with nothing."""
    async with (
        running_engine() as engine,
        running_gateway(pool_over(engine.url, slots={"perEndpoint": 4})) as gateway,
        contextlib.AsyncExitStack() as stack,
    ):

        async def arrive(number, *headers):
            arrived = gateway.dispatcher.counts.arrived
            line = await stack.enter_async_context(wire(gateway))
            await line.send(request_bytes(LONG if number % 3 else None, JSON, *headers, name="abc"[number % 3]))
            await until(lambda: gateway.dispatcher.counts.arrived > arrived)
            return line

        async def leave(number):
            await asyncio.sleep(0.002 * (number % 20))  # Wherever it may be by then.
            crowd[number].leave()

        holders = [await arrive(number, b"X-Engine-Fault: hang-before") for number in range(4)]
        crowd = [await arrive(number) for number in range(60)]
        for number in range(1, 60, 3):
            crowd[number].leave()
        await until(lambda: gateway.dispatcher.counts.removed == 20)
        for holder in holders:
            holder.leave()
        leaving = [asyncio.create_task(leave(number)) for number in range(2, 60, 3)]
        assert [(await crowd[number].answer())[0] for number in range(0, 60, 3)] == [200] * 20
        await asyncio.gather(*leaving)
        await until(lambda: nothing_is_left(gateway))
        await engine.until(lambda now: now.running == 0 and now.waiting == 0)
        counts = gateway.dispatcher.counts
        assert counts.dispatched == counts.completed
        assert counts.arrived == counts.dispatched + counts.removed
