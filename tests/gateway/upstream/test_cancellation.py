"""Whoever stops waiting closes the connection at once, so that the engine stops working for nobody."""

import asyncio
import contextlib

import pytest
from support.scripted_endpoint import PATIENCE, deaf_port, until

from fairpool_gateway.errors import UpstreamBroken
from fairpool_gateway.upstream import Timeouts, request_head

MUCH = 64 * 1024 * 1024


async def cancel(task):
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


class TestCancellation:
    async def test_while_connecting(self, ask, client):
        with deaf_port() as target:
            task = ask(target=target)
            done, _ = await asyncio.wait([task], timeout=0.02)
            assert not done
            await cancel(task)
        assert not client._connections

    async def test_at_any_step_of_connecting(self, ask, client, endpoint):
        for steps in range(12):
            task = ask()
            for _ in range(steps):
                await asyncio.sleep(0)
            await cancel(task)
        await until(lambda: not client._connections)
        for _ in range(endpoint.accepted):
            await (await endpoint.accept()).gone()

    async def test_before_any_answer(self, ask, endpoint):
        task = ask()
        peer = await endpoint.accept()
        await peer.request()
        await cancel(task)
        await peer.gone()

    async def test_between_the_headers_and_the_body(self, ask, endpoint):
        task = ask()
        peer = await endpoint.accept()
        await peer.request()
        await peer.send(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n")
        await asyncio.wait([task], timeout=0.02)
        await cancel(task)
        await peer.gone()

    async def test_in_the_middle_of_a_stream(self, ask, endpoint):
        task = ask()
        peer = await endpoint.accept()
        await peer.request()
        await peer.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n")
        response = await task
        assert await response.read() == b"a"
        reading = asyncio.create_task(response.read())
        await asyncio.sleep(0)
        await cancel(reading)
        await peer.gone()

    async def test_while_a_body_is_sent_that_the_endpoint_does_not_take(self, client, endpoint):
        async def body():
            while True:
                yield bytes(65536)

        head = request_head(b"POST", b"/", [(b"Content-Length", b"100000000000")])
        task = asyncio.create_task(client.send(endpoint.target, head, body(), Timeouts(10, 10, 10)))
        peer = await endpoint.accept()
        await until(lambda: any(connection._writable for connection in client._connections))
        await cancel(task)
        await peer.gone()

    async def test_sends_no_more_of_the_request(self, ask, endpoint):
        task = ask(bytes(MUCH))
        peer = await endpoint.accept()
        await peer.receive(1000)
        await cancel(task)
        assert await peer.gone() < MUCH / 2

    async def test_on_a_used_connection_is_not_tried_again(self, ask, endpoint):
        task = ask()
        peer = await endpoint.accept()
        await peer.request()
        await peer.answer()
        await task
        task = ask()
        await peer.request()
        await cancel(task)
        await peer.gone()
        assert endpoint.accepted == 1

    async def test_that_crosses_with_the_answer_spares_the_connection(self, ask, client, endpoint):
        task = ask()
        peer = await endpoint.accept()
        await peer.request()
        await peer.answer()
        await until(lambda: client._pool._idle)
        if not task.done():
            await cancel(task)
        next_task = ask()
        await peer.request()
        await peer.answer(b"unharmed")
        assert await (await next_task).read() == b"unharmed"


class TestClosing:
    async def test_early_closes_the_connection_at_once(self, ask, endpoint):
        task = ask()
        peer = await endpoint.accept()
        await peer.request()
        await peer.send(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello")
        response = await task
        response.close()
        await peer.gone()
        response.close()
        assert not response.complete
        assert await response.read() == b"hello"
        with pytest.raises(UpstreamBroken):
            await response.read()

    async def test_while_another_task_reads_wakes_it(self, ask, endpoint):
        task = ask()
        peer = await endpoint.accept()
        await peer.request()
        await peer.send(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello")
        response = await task
        await response.read()
        reading = asyncio.create_task(response.read())
        await asyncio.sleep(0)
        response.close()
        with pytest.raises(UpstreamBroken):
            await reading

    async def test_held_back_endpoint_notices_too(self, ask, endpoint):
        task = ask()
        peer = await endpoint.accept()
        await peer.request()
        pump = asyncio.create_task(peer.send(b"HTTP/1.1 200 OK\r\n\r\n" + bytes(16 * 1024 * 1024)))
        response = await task
        response.close()
        with contextlib.suppress(ConnectionError):
            await asyncio.wait_for(pump, PATIENCE)
