"""Silence ends an exchange; work and a slow reader do not."""

import asyncio

import pytest
from support.scripted_endpoint import deaf_port, until

from fairpool_gateway.errors import ConnectFailed, UpstreamTimedOut
from fairpool_gateway.upstream import Client, Timeouts, request_head
from fairpool_gateway.upstream.buffers import HIGH_WATER

SHORT = 0.04
"""Seconds of a limit that is to be reached. One that is not is `LIMIT`, which no machine is too slow for."""

LIMIT = 10.0
LONGER = LIMIT + 1
MUCH = 8 * 1024 * 1024


async def time_passes(client, seconds):
    """For the time-outs of a client's connections so many seconds pass at once, whatever they may seem to be."""
    loop = asyncio.get_running_loop()
    for connection in list(client._connections):
        connection._deadline -= seconds
        if connection._alarm is not None:
            connection._set_alarm(connection._alarm_at - seconds)
    await until(lambda: all(each._alarm is None or each._alarm_at > loop.time() for each in client._connections))


class TestConnect:
    async def test_neither_accepted_nor_refused(self, ask):
        with deaf_port() as target, pytest.raises(ConnectFailed, match=r"within 0\.04 s") as caught:
            await ask(target=target, connect=SHORT)
        assert isinstance(caught.value.__cause__, TimeoutError)


class TestFirstByte:
    async def test_silent_endpoint(self, ask, endpoint):
        task = ask(first_byte=SHORT)
        peer = await endpoint.accept()
        with pytest.raises(UpstreamTimedOut, match=r"no first byte within 0\.04 s"):
            await task
        await peer.gone()

    async def test_silent_endpoint_after_a_request_in_parts(self, client, endpoint):
        async def body():
            yield b"ab"

        head = request_head(b"POST", b"/", [(b"Content-Length", b"2")])
        with pytest.raises(UpstreamTimedOut, match="no first byte"):
            await asyncio.wait_for(client.send(endpoint.target, head, body(), Timeouts(10, SHORT, 600)), 5)

    async def test_headers_are_no_first_byte(self, ask, endpoint):
        task = ask(first_byte=SHORT)
        peer = await endpoint.accept()
        await peer.request()
        await peer.send(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n")
        with pytest.raises(UpstreamTimedOut):
            await task
        await peer.gone()

    async def test_headers_that_trickle_do_not_put_it_off(self, ask, endpoint):
        task = ask(first_byte=2 * SHORT)
        peer = await endpoint.accept()
        await peer.request()
        trickled = 0
        while not task.done():
            await peer.send(b"HTTP/1.1 102 Processing\r\n\r\n")
            trickled += 1
            await asyncio.wait([task], timeout=SHORT / 4)
        assert trickled < 50
        assert isinstance(task.exception(), UpstreamTimedOut)

    async def test_on_a_used_connection_is_not_tried_again(self, ask, endpoint):
        task = ask()
        peer = await endpoint.accept()
        await peer.request()
        await peer.answer()
        await task
        with pytest.raises(UpstreamTimedOut):
            await ask(first_byte=SHORT)
        assert endpoint.accepted == 1


class TestIdle:
    async def streaming(self, ask, endpoint, **timeouts):
        task = ask(**timeouts)
        peer = await endpoint.accept()
        await peer.request()
        await peer.send(b"HTTP/1.1 200 OK\r\n\r\nfirst")
        return peer, await task

    async def test_silence_within_a_stream(self, ask, endpoint):
        peer, response = await self.streaming(ask, endpoint, idle=SHORT)
        assert await response.read() == b"first"
        with pytest.raises(UpstreamTimedOut, match=r"silent for 0\.04 s"):
            await response.read()
        await peer.gone()

    async def test_stream_may_last_for_longer_than_every_limit(self, ask, client, endpoint):
        peer, response = await self.streaming(ask, endpoint, first_byte=LIMIT, idle=LIMIT)
        assert await response.read() == b"first"
        for _ in range(5):
            await time_passes(client, LIMIT / 2)
            await peer.send(b"more")
            assert await response.read() == b"more"
        await time_passes(client, LONGER)
        with pytest.raises(UpstreamTimedOut):
            await response.read()

    async def send_in_pieces(self, peer, size):
        """TLS encrypts a piece in one go, for which it takes the loop that the time-outs run on."""
        for _ in range(size // 65536):
            await peer.send(bytes(65536))

    async def test_endpoint_that_a_slow_reader_holds_back_is_not_silent(self, ask, client, endpoint):
        peer, response = await self.streaming(ask, endpoint, idle=LIMIT)
        pump = asyncio.create_task(self.send_in_pieces(peer, 16 * 1024 * 1024))
        await until(lambda: any(connection._reading_paused for connection in client._connections))
        await time_passes(client, LONGER)
        size = 0
        while size < 5 + 16 * 1024 * 1024:
            size += len(await response.read())
        await pump
        reading = asyncio.create_task(response.read())
        await until(lambda: not any(connection._reading_paused for connection in client._connections))
        await time_passes(client, LONGER)
        with pytest.raises(UpstreamTimedOut):
            await reading

    async def test_counts_again_once_a_slow_reader_has_caught_up(self, ask, client, endpoint):
        task = ask(idle=LIMIT)
        peer = await endpoint.accept()
        await peer.request()
        await peer.send(b"HTTP/1.1 200 OK\r\n\r\n" + bytes(HIGH_WATER + 1))
        response = await task
        await until(lambda: response.held == HIGH_WATER + 1)
        await time_passes(client, LONGER)
        assert len(await response.read()) == HIGH_WATER + 1
        reading = asyncio.create_task(response.read())
        await until(lambda: not any(connection._reading_paused for connection in client._connections))
        await time_passes(client, LONGER)
        with pytest.raises(UpstreamTimedOut):
            await reading

    async def test_endpoint_that_takes_no_request_is_silent(self, client, endpoint):
        async def body():
            while True:
                yield bytes(65536)

        head = request_head(b"POST", b"/", [(b"Content-Length", b"100000000000")])
        with pytest.raises(UpstreamTimedOut):
            await asyncio.wait_for(client.send(endpoint.target, head, body(), Timeouts(10, 600, SHORT)), 5)
        await (await endpoint.accept()).gone()

    async def test_caller_that_is_slow_to_give_its_request_is_not_the_endpoints_silence(self, client, endpoint):
        async def body():
            for _ in range(2):
                yield bytes(MUCH)
                await time_passes(client, LONGER)

        head = request_head(b"POST", b"/", [(b"Content-Length", b"%d" % (2 * MUCH))])
        task = asyncio.create_task(client.send(endpoint.target, head, body(), Timeouts(LIMIT, LIMIT, LIMIT)))
        peer = await endpoint.accept()
        assert (await peer.request())[1] == bytes(2 * MUCH)
        await until(lambda: not any(connection._uploading for connection in client._connections))
        await peer.answer()
        assert (await task).complete

    async def test_slow_caller_outlasts_the_keepalive_of_a_used_connection(self, endpoint):
        async def body():
            await time_passes(client, LONGER)
            yield b"ab"

        client = Client(keepalive=LIMIT)
        head = request_head(b"POST", b"/", [(b"Content-Length", b"2")])
        first = asyncio.create_task(client.send(endpoint.target, head, b"ab", Timeouts(LIMIT, LIMIT, LIMIT)))
        peer = await endpoint.accept()
        await peer.request()
        await peer.answer()
        await first
        second = asyncio.create_task(client.send(endpoint.target, head, body(), Timeouts(LIMIT, LIMIT, LIMIT)))
        assert (await peer.request())[1] == b"ab"
        await peer.answer()
        assert (await second).complete
        await client.aclose()

    async def test_answer_that_begins_before_the_request_ends_may_pause_like_any_other(self, client, endpoint):
        more = asyncio.Event()

        async def body():
            yield b"ab"
            await more.wait()
            yield b"cd"

        head = request_head(b"POST", b"/", [(b"Content-Length", b"4")])
        task = asyncio.create_task(client.send(endpoint.target, head, body(), Timeouts(LIMIT, LIMIT, 3 * LIMIT)))
        peer = await endpoint.accept()
        await peer.send(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nea")
        await until(lambda: any(connection._response.begun for connection in client._connections))
        more.set()
        response = await task
        assert await response.read() == b"ea"
        await time_passes(client, 2 * LIMIT)
        await peer.send(b"rl")
        assert await response.read() == b"rl"
        assert response.complete
