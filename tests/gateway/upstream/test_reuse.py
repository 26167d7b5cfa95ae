"""Connections are kept for the next exchange, and never used for one that they could spoil."""

import asyncio

import pytest
from msgspec.structs import replace
from support.scripted_endpoint import until

from fairpool_gateway.errors import UpstreamBroken
from fairpool_gateway.upstream import Client, Timeouts, request_head
from fairpool_gateway.upstream.connection import Connection
from fairpool_gateway.upstream.pool import Pool
from fairpool_gateway.upstream.target import Target


@pytest.fixture
async def used(ask, endpoint):
    """A connection that has carried one exchange."""
    task = ask()
    peer = await endpoint.accept()
    await peer.request()
    await peer.answer()
    assert (await task).complete
    return peer


class TestReuse:
    async def test_next_exchange_takes_the_same_connection(self, ask, endpoint, used):
        for _ in range(3):
            task = ask()
            await used.request()
            await used.answer(b"again")
            assert await (await task).read() == b"again"
        assert endpoint.accepted == 1

    async def test_connection_is_free_before_the_body_is_read(self, ask, endpoint, used):
        task = ask()
        await used.request()
        await used.answer(b"first")
        first = await task
        task = ask()
        await used.request()
        await used.answer(b"second")
        second = await task
        assert await first.read() == b"first"
        assert await second.read() == b"second"

    async def test_closing_a_complete_answer_spares_the_connection(self, ask, endpoint, used):
        task = ask()
        await used.request()
        await used.answer()
        response = await task
        next_task = ask()
        await used.request()
        response.close()
        response.close()
        await used.answer(b"unharmed")
        assert await (await next_task).read() == b"unharmed"

    async def test_connection_used_last_goes_first(self, ask, endpoint):
        tasks, peers = [], []
        for _ in range(3):
            tasks.append(ask())
            peers.append(await endpoint.accept())
            await peers[-1].request()
        for index in (0, 2, 1):
            await peers[index].answer()
            await tasks[index]
        task = ask()
        await peers[1].request()
        await peers[1].answer()
        await task

    async def test_targets_do_not_share(self, ask, endpoint, used):
        elsewhere = replace(endpoint.target, host="localhost")
        task = ask(target=elsewhere)
        peer = await endpoint.accept()
        await peer.request()
        await peer.answer()
        await task
        assert endpoint.accepted == 2

    @pytest.mark.parametrize(
        "answer",
        [
            b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok",
            b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok",
            b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokay",
            b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nbad",
        ],
        ids=["closing", "HTTP/1.0", "with extra bytes", "with another answer"],
    )
    async def test_not_after_an_answer_that_forbids_or_spoils_it(self, ask, endpoint, answer):
        task = ask()
        peer = await endpoint.accept()
        await peer.request()
        await peer.send(answer)
        response = await task
        assert response.complete
        assert await response.read() == b"ok"
        await peer.gone()

    async def test_bytes_that_nobody_asked_for_close_it(self, client, used):
        await used.send(b"HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\n\r\n")
        await used.gone()
        await until(lambda: not client._connections)

    async def test_an_answer_that_comes_before_its_request_is_written_is_nobodys(self, ask, client, endpoint, used):
        for _ in range(2):
            client._writes.came()  # So that the request is written once the loop has gone round.
        task = ask()
        await asyncio.sleep(0)
        (connection,) = client._connections
        connection.data_received(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nbad")
        peer = await endpoint.accept()
        await peer.request()
        await peer.answer()
        assert await (await task).read() == b"ok"
        await used.gone()


class TestIdleConnections:
    async def test_one_that_the_endpoint_closes_is_dropped_at_once(self, ask, client, endpoint, used):
        used.end()
        await until(lambda: not client._pool._idle)
        task = ask()
        peer = await endpoint.accept()
        await peer.request()
        await peer.answer()
        await task

    async def test_expire(self, endpoint):
        client = Client(keepalive=0.03)
        task = asyncio.create_task(client.send(endpoint.target, GET, b"", PATIENT))
        peer = await endpoint.accept()
        await peer.request()
        await peer.answer()
        await task
        await peer.gone()
        assert not client._pool._idle
        await client.aclose()

    async def test_timer_of_an_earlier_wait_does_not_end_a_later_exchange(self, endpoint):
        client = Client(keepalive=0.03)
        peer = None
        for _ in range(3):
            task = asyncio.create_task(client.send(endpoint.target, GET, b"", PATIENT))
            peer = peer or await endpoint.accept()
            await peer.request()
            await asyncio.wait([task], timeout=0.05)
            await peer.answer()
            assert (await task).complete
        assert endpoint.accepted == 1
        await client.aclose()

    async def test_busy_connection_sets_hardly_any_timer(self, endpoint, monkeypatch):
        alarms = []
        set_alarm = Connection._set_alarm
        monkeypatch.setattr(Connection, "_set_alarm", lambda self, when: alarms.append(when) or set_alarm(self, when))
        client = Client()
        peer = None
        for _ in range(30):
            task = asyncio.create_task(client.send(endpoint.target, GET, b"", Timeouts(10, 600, 60)))
            peer = peer or await endpoint.accept()
            await peer.request()
            await peer.answer()
            await task
        assert len(alarms) == 2
        await client.aclose()

    async def test_are_bounded(self, endpoint):
        client = Client(idle_connections=2)
        tasks = [asyncio.create_task(client.send(endpoint.target, GET, b"", PATIENT)) for _ in range(5)]
        peers = [await endpoint.accept() for _ in tasks]
        for peer in peers:
            await peer.request()
            await peer.answer()
        for task in tasks:
            assert (await task).complete
        await until(lambda: len(client._connections) == 2)
        await client.aclose()

    def test_target_without_any_costs_no_memory(self):
        pool = Pool(2)
        target = Target("a", 1)
        assert pool.put(target, "x")
        assert pool.put(target, "y")
        assert not pool.put(target, "z")
        pool.discard(target, "x")
        pool.discard(target, "x")
        assert pool.take(target) == "y"
        assert pool.take(target) is None
        assert pool.put(target, "x")
        pool.discard(target, "x")
        assert not pool._idle

    def test_no_work_grows_with_their_number(self):
        looked_at = 0

        class Idle:
            def __eq__(self, other):
                nonlocal looked_at
                looked_at += 1
                return self is other

            def __hash__(self):
                return id(self)

        pool, target, idle = Pool(3000), Target("a", 1), [Idle() for _ in range(3000)]
        for each in idle:
            assert pool.put(target, each)
        for each in idle[:2000:2]:
            pool.discard(target, each)
        for _ in range(2000):
            pool.take(target)
        assert pool.take(target) is None
        assert looked_at < 3000

    def test_none_may_be_kept(self):
        assert not Pool(0).put(Target("a", 1), "x")


class TestDeadConnection:
    @pytest.mark.parametrize("way", ["end", "reset"])
    async def test_request_is_sent_once_more_on_a_new_one(self, ask, endpoint, used, way):
        task = ask(b"precious")
        assert (await used.request())[1] == b"precious"
        getattr(used, way)()
        peer = await endpoint.accept()
        assert (await peer.request())[1] == b"precious"
        await peer.answer(b"second try")
        assert await (await task).read() == b"second try"

    async def test_closed_before_the_loop_could_notice(self, ask, endpoint, used):
        used.reset()
        task = ask()
        peer = await endpoint.accept()
        await peer.request()
        await peer.answer()
        assert (await task).complete

    async def test_new_connection_is_really_new(self, ask, endpoint, used):
        other = ask()
        await used.request()
        third = ask()
        spare = await endpoint.accept()
        await spare.request()
        await spare.answer()
        await third
        await used.answer()
        await other
        task = ask()
        await used.request()
        used.end()
        peer = await endpoint.accept()
        await peer.request()
        await peer.answer()
        await task
        assert endpoint.accepted == 3

    async def test_not_a_third_time(self, ask, endpoint, used):
        task = ask()
        await used.request()
        used.end()
        peer = await endpoint.accept()
        await peer.request()
        peer.end()
        with pytest.raises(UpstreamBroken) as caught:
            await task
        assert not caught.value.answered
        assert endpoint.accepted == 2

    async def test_not_after_a_byte_of_the_answer(self, ask, endpoint, used):
        task = ask()
        await used.request()
        await used.send(b"H")
        used.end()
        with pytest.raises(UpstreamBroken) as caught:
            await task
        assert caught.value.answered
        assert endpoint.accepted == 1

    async def test_not_on_a_connection_that_was_new(self, ask, endpoint):
        task = ask()
        peer = await endpoint.accept()
        await peer.request()
        peer.end()
        with pytest.raises(UpstreamBroken):
            await task
        assert endpoint.accepted == 1

    async def test_not_with_a_body_that_cannot_be_sent_twice(self, client, endpoint, used):
        async def body():
            yield b"once"

        task = asyncio.create_task(client.send(endpoint.target, POST_4, body(), PATIENT))
        assert (await used.request())[1] == b"once"
        used.end()
        with pytest.raises(UpstreamBroken) as caught:
            await task
        assert not caught.value.answered
        assert endpoint.accepted == 1


PATIENT = Timeouts(10, 10, 10)
GET = request_head(b"GET", b"/", [(b"Host", b"endpoint")])
POST_4 = request_head(b"POST", b"/", [(b"Content-Length", b"4")])
