"""What goes out and what comes back, over real sockets."""

import asyncio
import gc
import math

import pytest
from hypothesis import HealthCheck, given, settings
from support.answers import answers
from support.scripted_endpoint import refusing_port, until

from fairpool_gateway.errors import ConnectFailed, UpstreamBroken, UpstreamError
from fairpool_gateway.upstream import Client, Response, Target, Timeouts, request_head
from fairpool_gateway.upstream.connection import Connection


async def everything(response):
    body = b""
    while data := await response.read():
        body += data
    return body


class TestRequest:
    async def test_head_and_body_go_out_as_they_are(self, ask, endpoint):
        body = bytes(range(256)) * 20_000
        task = ask(body)
        peer = await endpoint.accept()
        head, received = await peer.request()
        assert head == b"POST /v1/echo HTTP/1.1\r\nHost: endpoint\r\nContent-Length: 5120000\r\n\r\n"
        assert received == body
        await peer.answer()
        await task

    def test_head_keeps_order_repeats_and_case(self):
        headers = [(b"X-B", b"1"), (b"x-a", b"2"), (b"X-B", b"3")]
        assert request_head(b"GET", b"/a?b=c", headers) == b"GET /a?b=c HTTP/1.1\r\nX-B: 1\r\nx-a: 2\r\nX-B: 3\r\n\r\n"

    @pytest.mark.parametrize(
        ("method", "path", "header"),
        [
            (b"GET", b"/ HTTP/1.1\r\nX: y", (b"a", b"b")),
            (b"GET", b"/a b", (b"a", b"b")),
            (b"GET /", b"/", (b"a", b"b")),
            (b"GET", b"/", (b"a", b"b\r\nX: y")),
            (b"GET", b"/", (b"a\n", b"b")),
            (b"GET", b"/", (b"a", b"b\rc")),
        ],
    )
    def test_head_that_would_read_as_another_is_refused(self, method, path, header):
        with pytest.raises(ValueError, match=r"line break|space"):
            request_head(method, path, [header])


class TestAnswer:
    async def test_short_one_in_one_segment_is_there_at_once(self, ask, endpoint):
        task = ask()
        peer = await endpoint.accept()
        await peer.request()
        await peer.answer(b"hello", headers=b"X-A: 1\r\nx-a: 2\r\n")
        response = await task
        assert response.complete
        assert (response.status, response.reason) == (200, b"OK")
        assert response.headers == [(b"x-a", b"1"), (b"x-a", b"2"), (b"content-length", b"5")]
        with pytest.raises(StopIteration) as read_without_waiting:
            response.read().send(None)
        assert read_without_waiting.value.value == b"hello"
        assert await response.read() == b""
        assert await response.read() == b""

    async def test_content_encoding_is_left_alone(self, ask, endpoint):
        task = ask()
        peer = await endpoint.accept()
        await peer.request()
        await peer.answer(b"\x1f\x8b not really", headers=b"Content-Encoding: gzip\r\n")
        response = await task
        assert (b"content-encoding", b"gzip") in response.headers
        assert await everything(response) == b"\x1f\x8b not really"

    async def test_headers_are_held_until_the_first_byte_of_the_body(self, ask, endpoint):
        task = ask()
        peer = await endpoint.accept()
        await peer.request()
        await peer.send(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n")
        done, _ = await asyncio.wait([task], timeout=0.05)
        assert not done
        await peer.send(b"h")
        response = await task
        assert response.status == 200
        assert not response.complete
        assert await response.read() == b"h"
        await peer.send(b"i\r\n0\r\n\r\n")
        assert await everything(response) == b"i"
        assert response.complete

    async def test_pieces_that_wait_are_read_as_one(self, ask, endpoint):
        task = ask()
        peer = await endpoint.accept()
        await peer.request()
        await peer.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n1\r\nb\r\n1\r\nc\r\n")
        response = await task
        assert await response.read() == b"abc"
        response.close()

    async def test_without_a_length_ends_with_the_connection(self, ask, endpoint):
        task = ask()
        peer = await endpoint.accept()
        await peer.request()
        await peer.send(b"HTTP/1.1 200 OK\r\n\r\nhello")
        response = await task
        assert not response.complete
        peer.end()
        assert await everything(response) == b"hello"
        assert response.complete

    async def test_without_a_length_and_cut_is_broken(self, ask, endpoint):
        task = ask()
        peer = await endpoint.accept()
        await peer.request()
        await peer.send(b"HTTP/1.1 200 OK\r\n\r\nhello")
        response = await task
        assert await response.read() == b"hello"
        peer.reset()
        with pytest.raises(UpstreamBroken):
            await response.read()

    @pytest.mark.parametrize("status", [b"204 No Content", b"304 Not Modified"])
    async def test_status_without_a_body_completes_with_its_headers(self, ask, endpoint, status):
        task = ask()
        peer = await endpoint.accept()
        await peer.request()
        await peer.send(b"HTTP/1.1 " + status + b"\r\n\r\n")
        assert (await task).complete

    async def test_to_head_completes_with_its_headers(self, ask, endpoint):
        task = ask(method=b"HEAD")
        peer = await endpoint.accept()
        await peer.request()
        await peer.send(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
        response = await task
        assert response.complete
        assert (b"content-length", b"1000") in response.headers
        assert await response.read() == b""

    # The executors that differ are the two loops, on each of which every example must hold.
    @settings(
        max_examples=40,
        deadline=None,
        suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.differing_executors],
    )
    @given(answers())
    async def test_is_the_same_in_any_segments(self, ask, client, endpoint, answer):
        task = ask()
        peer = await endpoint.accept()
        await peer.request()
        for segment in answer.segments:
            await peer.send(segment)
            await asyncio.sleep(0)
        peer.end()
        response = await task
        body = await everything(response)
        assert (response.status, response.reason) == (answer.status, answer.reason)
        assert response.headers == answer.headers
        assert body == answer.body
        await until(lambda: not client._connections)


class TestBrokenAnswer:
    @pytest.mark.parametrize(
        "framing", [b"Content-Length: 10\r\n\r\nhello", b"Transfer-Encoding: chunked\r\n\r\n5\r\nhello"]
    )
    @pytest.mark.parametrize("way", ["end", "reset"])
    async def test_gives_what_came_and_then_the_break(self, ask, endpoint, framing, way):
        task = ask()
        peer = await endpoint.accept()
        await peer.request()
        await peer.send(b"HTTP/1.1 200 OK\r\n" + framing)
        response = await task
        assert await response.read() == b"hello"
        getattr(peer, way)()
        with pytest.raises(UpstreamBroken) as caught:
            await response.read()
        assert caught.value.answered
        assert not response.complete
        response.close()

    async def test_garbage_within_the_body_breaks_it_and_closes(self, ask, endpoint):
        task = ask()
        peer = await endpoint.accept()
        await peer.request()
        await peer.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n")
        response = await task
        assert await response.read() == b"hello"
        await peer.send(b"nonsense\r\n")
        with pytest.raises(UpstreamBroken, match="no HTTP"):
            await response.read()
        await peer.gone()

    @pytest.mark.parametrize(
        ("sent", "answered"), [(b"", False), (b"HT", True), (b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n", True)]
    )
    async def test_before_its_first_byte_says_whether_anything_had_come(self, ask, endpoint, sent, answered):
        task = ask()
        peer = await endpoint.accept()
        await peer.request()
        await peer.send(sent)
        peer.end()
        with pytest.raises(UpstreamBroken) as caught:
            await task
        assert caught.value.answered is answered

    @pytest.mark.parametrize("endpoint", ["tcp"], indirect=True)
    async def test_endpoint_that_stops_both_sending_and_taking_is_given_up_at_once(self, ask, endpoint):
        task = ask(bytes(32 * 1024 * 1024))
        peer = await endpoint.accept()
        await peer.receive(1000)
        peer.end_sending()
        with pytest.raises(UpstreamBroken):
            await task

    async def test_endless_headers_break_it(self, ask, endpoint):
        task = ask()
        peer = await endpoint.accept()
        await peer.request()
        await peer.send(b"HTTP/1.1 200 OK\r\nX: " + b"a" * 70_000)
        with pytest.raises(UpstreamBroken, match="bytes of headers"):
            await task
        await peer.gone()


class TestConnecting:
    async def test_refused(self, ask):
        with pytest.raises(ConnectFailed, match=r"no connection to 127\.0\.0\.1:\d"):
            await ask(target=refusing_port())

    async def test_to_no_host(self, ask):
        with pytest.raises(ConnectFailed, match="no connection to"):
            await ask(target=Target("a" * 64 + ".invalid", 80))

    async def test_lost_before_the_request_could_be_sent(self, client, endpoint):
        connection = await client._connect(endpoint.target, math.inf)
        (await endpoint.accept()).reset()
        await connection.lost
        with pytest.raises(UpstreamBroken) as caught:
            await asyncio.wait_for(connection.exchange(b"", b"", Timeouts(1, 1, 1)), 0.5)
        assert not caught.value.answered

    async def test_while_the_client_is_being_closed(self, ask, client, endpoint):
        task = ask()
        await asyncio.sleep(0)
        await client.aclose()
        with pytest.raises(UpstreamError):
            await task
        await until(lambda: not client._connections)

    async def test_with_a_closed_client(self, endpoint, client, ask):
        await client.aclose()
        with pytest.raises(ConnectFailed, match="client is closed"):
            await ask()
        assert endpoint.accepted == 0

    async def test_closing_the_client_breaks_what_is_under_way(self, ask, endpoint, client):
        waiting = ask()
        await (await endpoint.accept()).request()
        streaming = ask()
        peer = await endpoint.accept()
        await peer.request()
        await peer.send(b"HTTP/1.1 200 OK\r\n\r\nhello")
        response = await streaming
        await client.aclose()
        with pytest.raises(UpstreamBroken):
            await waiting
        assert await response.read() == b"hello"
        with pytest.raises(UpstreamBroken):
            await response.read()
        await peer.gone()

    def test_client_needs_no_loop_to_be_made(self):
        assert Client()


def upstream_objects():
    return [kept for kept in gc.get_objects() if isinstance(kept, Response | Connection)]


class TestMemory:
    async def test_neither_an_answer_nor_a_cancellation_leaves_work_for_the_garbage_collector(
        self, ask, client, endpoint
    ):
        gc.collect()
        earlier = upstream_objects()
        gc.disable()
        try:
            for exchange in (self.answered, self.cancelled):
                await exchange(ask, endpoint)
                await until(lambda: not client._connections)
            assert not [kept for kept in upstream_objects() if kept not in earlier]
        finally:
            gc.enable()

    async def answered(self, ask, endpoint):
        task = ask(first_byte=600)
        peer = await endpoint.accept()
        await peer.request()
        await peer.answer()
        assert (await task).complete
        peer.end()

    async def cancelled(self, ask, endpoint):
        task = ask(first_byte=600)
        await (await endpoint.accept()).request()
        task.cancel()
        await asyncio.wait([task])
