"""A slow reader holds the endpoint back, a slow endpoint the caller: memory is bounded on both ways."""

import asyncio
import contextlib

from support.scripted_endpoint import PATIENCE, until

from fairpool_gateway.upstream import Timeouts, buffers, request_head
from fairpool_gateway.upstream.buffers import ALWAYS, HIGH_WATER

SEGMENT = 512 * 1024
"""What either event loop hands over at most at a time: one read of it, and over TLS what it kept of the one before."""

MUCH = 32 * 1024 * 1024
PATIENT = Timeouts(10, 10, 10)
POST = request_head(b"POST", b"/", [(b"Content-Length", b"%d" % MUCH)])


class TestSlowReader:
    async def test_holds_the_endpoint_back_and_loses_nothing(self, ask, client, endpoint):
        task = ask()
        peer = await endpoint.accept()
        await peer.request()
        body = bytes(range(256)) * (MUCH // 256)
        pump = asyncio.create_task(peer.answer(body))
        response = await task
        received = bytearray()
        while not response.complete:
            await until(lambda: response.waiting > HIGH_WATER or response.complete)
            assert response.waiting == client.buffered <= HIGH_WATER + SEGMENT
            received += await response.read()
        received += await response.read()
        response.close()
        assert received == body
        assert client.buffered == 0
        await pump

    async def test_is_not_held_back_itself_by_another_one(self, ask, client, endpoint):
        slow = ask()
        stuffed = await endpoint.accept()
        await stuffed.request()
        pump = asyncio.create_task(stuffed.answer(bytes(MUCH)))
        response = await slow
        await until(lambda: response.held > HIGH_WATER)
        quick = ask()
        peer = await endpoint.accept()
        await peer.request()
        await peer.answer()
        assert (await quick).complete
        response.close()
        with contextlib.suppress(ConnectionError):
            await asyncio.wait_for(pump, PATIENCE)

    async def test_beyond_what_all_may_hold_has_little_of_its_own(self, ask, client, endpoint, monkeypatch):
        monkeypatch.setattr(buffers, "MOST_IN_ALL", HIGH_WATER // 2)
        responses, pumps = [], []
        for _ in range(2):
            task = ask()
            peer = await endpoint.accept()
            await peer.request()
            pumps.append(asyncio.create_task(peer.answer(bytes(4 * HIGH_WATER))))
            responses.append(await task)
            await until(lambda: sum(each._reading_paused for each in client._connections) == len(responses))
        first, second = responses
        assert HIGH_WATER // 2 < first.held <= HIGH_WATER
        assert ALWAYS < second.held <= ALWAYS + SEGMENT
        first.close()
        size = 0
        while data := await second.read():
            size += len(data)
        assert size == 4 * HIGH_WATER
        assert client.buffered == 0
        with contextlib.suppress(ConnectionError):
            await asyncio.gather(*pumps)


class TestBodyInParts:
    async def test_is_sent_no_faster_than_the_endpoint_takes_it(self, client, endpoint):
        given = 0

        async def body():
            nonlocal given
            for _ in range(MUCH // 65536):
                given += 65536
                yield bytes(65536)

        task = asyncio.create_task(client.send(endpoint.target, POST, body(), PATIENT))
        peer = await endpoint.accept()
        await until(lambda: any(connection._writable for connection in client._connections))
        assert given < MUCH
        _, received = await peer.request()
        assert received == bytes(MUCH)
        await peer.answer()
        assert (await task).complete

    async def test_leaves_a_connection_that_can_be_used_again(self, client, endpoint, ask):
        async def body():
            yield b"ab"
            yield b"cd"

        head = request_head(b"POST", b"/", [(b"Content-Length", b"4")])
        task = asyncio.create_task(client.send(endpoint.target, head, body(), PATIENT))
        peer = await endpoint.accept()
        assert (await peer.request())[1] == b"abcd"
        await peer.answer()
        await task
        task = ask()
        await peer.request()
        await peer.answer()
        await task
        assert endpoint.accepted == 1

    async def test_is_cut_short_by_a_complete_answer(self, client, endpoint):
        more = asyncio.Event()

        async def body():
            yield b"ab"
            await more.wait()
            yield b"cd"
            raise AssertionError("asked for more than the endpoint wants")

        task = asyncio.create_task(client.send(endpoint.target, POST, body(), PATIENT))
        peer = await endpoint.accept()
        await peer.send(b"HTTP/1.1 413 Content Too Large\r\nContent-Length: 3\r\n\r\ntoo")
        await peer.gone()
        more.set()
        response = await task
        assert response.status == 413
        assert await response.read() == b"too"

    async def test_whose_end_comes_after_that_of_the_answer(self, client, endpoint):
        end = asyncio.Event()

        async def body():
            yield b"ab"
            await end.wait()

        task = asyncio.create_task(client.send(endpoint.target, POST, body(), PATIENT))
        peer = await endpoint.accept()
        await peer.answer(b"enough")
        await peer.gone()
        end.set()
        assert await (await task).read() == b"enough"

    async def test_that_fails_closes_the_connection(self, client, endpoint):
        async def body():
            yield b"ab"
            raise LookupError("the caller's own trouble")

        task = asyncio.create_task(client.send(endpoint.target, POST, body(), PATIENT))
        peer = await endpoint.accept()
        await asyncio.wait([task])
        assert isinstance(task.exception(), LookupError)
        await peer.gone()

    async def test_whose_endpoint_goes_away_is_broken(self, client, endpoint):
        async def body():
            while True:
                yield bytes(65536)

        task = asyncio.create_task(client.send(endpoint.target, POST, body(), PATIENT))
        peer = await endpoint.accept()
        await until(lambda: any(connection._writable for connection in client._connections))
        peer.reset()
        await asyncio.wait([task])
        assert not task.exception().answered


class TestBodyInOnePiece:
    async def test_that_is_not_taken_leaves_no_connection_to_use_again(self, ask, client, endpoint):
        task = ask(bytes(MUCH))
        peer = await endpoint.accept()
        await peer.send(b"HTTP/1.1 413 Content Too Large\r\nContent-Length: 3\r\n\r\ntoo")
        response = await task
        assert await response.read() == b"too"
        await peer.gone()
