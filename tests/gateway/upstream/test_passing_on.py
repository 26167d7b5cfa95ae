"""What comes of an answer is passed on as it comes, until the sink has enough; nothing is lost, doubled or held on."""

import asyncio

import pytest
from support.scripted_endpoint import PATIENCE, until

from fairpool_gateway.errors import UpstreamBroken
from fairpool_gateway.upstream import buffers
from fairpool_gateway.upstream.buffers import ALWAYS, HIGH_WATER

CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
END = b"0\r\n\r\n"
SEGMENT = 512 * 1024
"""What either event loop hands over at most at a time."""


def chunk(data):
    return b"%x\r\n%b\r\n" % (len(data), data)


class Sink:
    """Keeps what it is given; `patience` says how many bytes it takes before it has enough."""

    def __init__(self, patience=1 << 30):
        self.pieces = []
        self.patience = patience

    @property
    def bytes(self):
        return b"".join(self.pieces)

    def __call__(self, data):
        self.pieces.append(data)
        self.patience -= len(data)
        return self.patience > 0


@pytest.fixture
def sink():
    return Sink()


@pytest.fixture
def peer(endpoint):
    """The endpoint's side of the exchange, which has read the request."""

    async def asked():
        peer = await endpoint.accept()
        await peer.request()
        return peer

    return asked


@pytest.fixture
async def stream(ask, peer):
    """An answer of which the first piece is here, and the endpoint that sends more of it."""
    task = ask()
    sends = await peer()
    await sends.send(CHUNKED + chunk(b"first "))
    response = await task
    yield response, sends
    response.close()


class TestASinkThatTakesAll:
    async def test_of_a_whole_answer_is_given_it_in_one_piece(self, ask, peer, sink, client):
        task = ask()
        await (await peer()).answer(b"whole")
        response = await task
        assert await response.pass_to(sink)
        assert sink.pieces == [b"whole"]
        assert client.buffered == 0

    async def test_is_called_at_the_end_of_an_answer_without_a_body(self, ask, peer, sink):
        task = ask()
        await (await peer()).answer(b"")
        assert await (await task).pass_to(sink)
        assert sink.pieces == [b""]

    async def test_is_given_each_piece_without_a_task_that_is_woken_for_it(self, stream, sink, client):
        response, sends = stream
        passing = asyncio.create_task(response.pass_to(sink))
        await until(lambda: sink.pieces == [b"first "])
        waits_for = response._waiter
        await sends.send(chunk(b"second "))
        await until(lambda: len(sink.pieces) == 2)
        assert response._waiter is waits_for
        assert not waits_for.done()
        assert response.held == client.buffered == 0
        await sends.send(chunk(b"third") + END)
        async with asyncio.timeout(PATIENCE):
            assert await passing
        assert sink.bytes == b"first second third"
        assert client.buffered == 0

    async def test_has_all_that_came_before_an_answer_broke(self, stream, sink):
        response, sends = stream
        passing = asyncio.create_task(response.pass_to(sink))
        await sends.send(chunk(b"second ") + b"5\r\nthi")
        await until(lambda: sink.bytes == b"first second thi")
        sends.end()
        async with asyncio.timeout(PATIENCE):
            with pytest.raises(UpstreamBroken):
                await passing

    async def test_has_what_came_together_with_what_is_no_http(self, stream, sink):
        response, sends = stream
        passing = asyncio.create_task(response.pass_to(sink))
        await until(lambda: sink.pieces)
        await sends.send(chunk(b"second") + b"no chunk\r\n")
        async with asyncio.timeout(PATIENCE):
            with pytest.raises(UpstreamBroken):
                await passing
        assert sink.bytes == b"first second"


class TestASinkThatHasEnough:
    async def test_is_given_no_more_until_it_is_passed_to_again(self, stream, sink, client):
        response, sends = stream
        sink.patience = 0
        async with asyncio.timeout(PATIENCE):
            assert not await response.pass_to(sink)
        await sends.send(chunk(b"second "))
        await until(lambda: response.held)
        assert sink.bytes == b"first "
        assert response.waiting == client.buffered == len(b"first second ")
        await sends.send(chunk(b"third") + END)
        sink.patience = 1 << 30
        async with asyncio.timeout(PATIENCE):
            assert await response.pass_to(sink)
        assert sink.bytes == b"first second third"
        assert client.buffered == 0

    async def test_may_have_enough_of_what_comes_while_it_waits(self, stream, sink):
        response, sends = stream
        sink.patience = len(b"first ") + 1
        passing = asyncio.create_task(response.pass_to(sink))
        await until(lambda: sink.pieces)
        await sends.send(chunk(b"second "))
        async with asyncio.timeout(PATIENCE):
            assert not await passing
        assert sink.bytes == b"first second "
        assert response.waiting == len(b"second ")

    async def test_holds_the_endpoint_back_and_loses_nothing(self, ask, peer, client):
        task = ask()
        sends = await peer()
        body = bytes(range(256)) * (32 * 1024 * 1024 // 256)
        pump = asyncio.create_task(sends.answer(body))
        response, sink = await task, Sink()
        ended = False
        while not ended:
            sink.patience = 1
            async with asyncio.timeout(PATIENCE):
                ended = await response.pass_to(sink)
            await until(lambda: response.waiting > HIGH_WATER or response.complete)
            assert response.waiting == client.buffered <= HIGH_WATER + SEGMENT
        await pump
        response.close()
        assert sink.bytes == body
        assert client.buffered == 0

    async def test_is_given_all_the_rest_once_it_takes_more_though_the_endpoint_was_held_back(
        self, ask, peer, client, monkeypatch
    ):
        task = ask()
        sends = await peer()
        body = bytes(range(256)) * (8 * 1024 * 1024 // 256)
        pump = asyncio.create_task(sends.answer(body))
        response, sink = await task, Sink(patience=1)
        async with asyncio.timeout(PATIENCE):
            assert not await response.pass_to(sink)
            await until(lambda: response.held > ALWAYS and response.waiting > HIGH_WATER)
            monkeypatch.setattr(buffers, "MOST_IN_ALL", 0)
            sink.patience = 1 << 30
            assert await response.pass_to(sink)
        await pump
        assert sink.bytes == body
        assert client.buffered == 0


async def test_whoever_stops_waiting_closes_the_connection(stream, sink, client):
    response, sends = stream
    passing = asyncio.create_task(response.pass_to(sink))
    await until(lambda: sink.pieces)
    passing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await passing
    await sends.gone()
    assert sink.bytes == b"first "
    assert client.buffered == 0
