"""Large bodies take turns to be read, so that nobody else waits longer than for one of them."""

import asyncio
import json
from functools import partial

import pytest
from support.gateway import running_gateway
from support.scripted_endpoint import ScriptedEndpoint, until
from support.tenant import QUESTION, pool_over, request_bytes, tenant, wire

from fairpool_gateway.app.body import LARGE, Bodies
from fairpool_gateway.broker import Broker
from fairpool_gateway.cost import Api, read_shape
from fairpool_gateway.dispatcher import Dispatcher
from fairpool_gateway.errors import InvalidRequest, QueueFull

MOST = 1 << 30


def large(size=LARGE + 1):
    return b'{"model": "sim", "prompt": "%b"}' % (b"x" * (size - 30))


def in_pieces(body):
    """What a server gives of a body; everything has come already."""
    pieces = [body[at : at + (1 << 20)] for at in range(0, len(body), 1 << 20)]
    messages = [{"type": "http.request", "body": piece, "more_body": True} for piece in pieces[:-1]]
    messages.append({"type": "http.request", "body": pieces[-1], "more_body": False})

    async def receive():
        return messages.pop(0)

    return receive


@pytest.fixture
async def broker():
    broker = Broker(Dispatcher(pool_over(queue={"maxBytes": "64Mi", "perTenant": {"maxBytes": "64Mi"}})))
    yield broker
    broker.close()


class Turns:
    """Reads bodies, and keeps in which turn of the loop each was parsed."""

    def __init__(self):
        self.now = 0
        self.seen = []

    def parse(self, api, body, content_type):
        self.seen.append(self.now)
        return read_shape(api, body, content_type)

    async def count(self):
        while True:
            self.now += 1
            await asyncio.sleep(0)

    async def read(self, reader, *given, name="a", api=Api.COMPLETIONS):
        arguments = {"read": partial(self.parse, api), "most": MOST}
        return await asyncio.gather(*(reader.read(name, [], in_pieces(body), **arguments) for body in given))


@pytest.fixture
async def turns():
    turns = Turns()
    counting = asyncio.create_task(turns.count())
    yield turns
    counting.cancel()


class TestTurns:
    async def test_no_two_large_bodies_are_parsed_in_one_turn_of_the_loop(self, broker, turns):
        found = await turns.read(Bodies(broker), large(), large(), large())
        assert [body for body, _ in found] == [large()] * 3
        assert len(turns.seen) == len(set(turns.seen)) == 3

    async def test_small_ones_are_parsed_as_soon_as_they_have_come(self, broker, turns):
        await turns.read(Bodies(broker), large(LARGE), large(LARGE))
        assert len(turns.seen) == 2
        assert len(set(turns.seen)) == 1

    async def test_a_small_one_does_not_wait_for_a_large_one(self, broker, turns):
        await turns.read(Bodies(broker), large(), large(), large(1000))
        assert len(set(turns.seen)) == 3
        small, *_ = turns.seen
        assert small == min(turns.seen)

    async def test_one_that_is_refused_gives_its_turn_to_the_next(self, broker, turns):
        reader = Bodies(broker)
        refused, found = await asyncio.gather(
            turns.read(reader, b"[" * (LARGE + 1), api=Api.CHAT), turns.read(reader, large()), return_exceptions=True
        )
        assert isinstance(refused, InvalidRequest)
        assert found[0][0] == large()

    async def test_one_whose_tenant_leaves_does_too(self, broker, turns):
        reader = Bodies(broker)
        leaves, stays = (asyncio.create_task(turns.read(reader, large())) for _ in range(2))
        await until(reader._turns.locked)
        leaves.cancel()
        assert await stays
        assert broker.dispatcher.admission.bytes == 0


class TestWhatIsCounted:
    async def test_a_body_that_waits_for_its_turn_is_counted(self, broker, turns):
        reader = Bodies(broker)
        async with reader._turns:
            reading = asyncio.create_task(turns.read(reader, large(), large()))
            await until(lambda: broker.dispatcher.admission.bytes == 2 * (LARGE + 1))
            assert not turns.seen
        await reading
        assert broker.dispatcher.admission.bytes == 0

    async def test_and_makes_room_like_any_other(self, broker, turns):
        reader = Bodies(broker)
        async with reader._turns:
            reading = asyncio.create_task(turns.read(reader, large(40 << 20)))
            await until(lambda: broker.dispatcher.admission.bytes == 40 << 20)
            other = asyncio.create_task(turns.read(reader, large(30 << 20), name="b"))
            await until(lambda: broker.dispatcher.admission.bytes == 30 << 20)
        with pytest.raises(QueueFull):
            await reading
        assert await other


async def test_a_large_body_reaches_the_endpoint_as_it_was_sent_while_others_are_served():
    async with (
        ScriptedEndpoint.listening() as endpoint,
        running_gateway(pool_over(endpoint)) as gateway,
        wire(gateway) as line,
    ):
        body = json.dumps({**QUESTION, "messages": [{"role": "user", "content": "x" * (6 << 20)}]}).encode()
        sending = asyncio.create_task(line.send(request_bytes(body)))
        peer = await endpoint.accept()
        head, got = await peer.request()
        assert got == body
        assert b"content-length: %d\r\n" % len(body) in head
        await sending
        async with tenant(gateway, "b") as client:
            asking = asyncio.create_task(client.chat.completions.create(**QUESTION))
            other = await endpoint.accept()
            await other.request()
            await other.answer(b"{}", headers=b"content-type: application/json\r\n")
            await asking
        await peer.answer()
        assert (await line.answer())[0] == 200
