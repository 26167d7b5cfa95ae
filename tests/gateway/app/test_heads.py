"""An answer goes out in few writes, its head with the first piece of its body, and never waits for what is to come."""

import asyncio
import contextlib

import pytest
from support.gateway import running_gateway
from support.scripted_endpoint import ScriptedEndpoint
from support.tenant import pool_over, request_bytes, wire

from fairpool_gateway.app import connection
from fairpool_gateway.app.answers import LARGE, Answers
from fairpool_gateway.writes import Writes

JSON = b"Content-Type: application/json"
EVENTS = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"


class Written:
    """A transport that notes what each call of the system writes, and hands it on to another one, if there is one."""

    def __init__(self, other=None):
        self.calls = []
        self._other = other
        self._closing = False

    def __getattr__(self, name):
        return getattr(self._other, name)

    def writelines(self, pieces):
        self.calls.append(b"".join(pieces))
        if self._other is not None:
            self._other.write(self.calls[-1])

    def is_closing(self):
        return self._closing

    def close(self):
        self.calls.append(None)
        self._closing = True
        if self._other is not None:
            self._other.close()

    abort = close


@pytest.fixture
def written():
    return Written()


@pytest.fixture
def writes():
    return Writes()


@pytest.fixture
def answers(written, writes):
    return Answers(written, writes)


class TestAHeadThatIsHeld:
    @pytest.fixture
    def answers(self, answers):
        answers.hold(b"head ")
        return answers

    async def test_goes_out_with_what_follows_it(self, answers, written):
        answers.write(b"body")
        answers.write(b"more")
        assert written.calls == [b"head body", b"more"]

    async def test_goes_out_with_the_end_of_an_answer_that_has_no_body(self, answers, written):
        answers.write(b"")
        assert written.calls == [b"head "]

    async def test_goes_out_by_itself_once_it_is_to_and_not_again(self, answers, written):
        answers.release()
        answers.release()
        answers.write(b"body")
        assert written.calls == [b"head ", b"body"]

    async def test_goes_out_before_the_end_of_its_connection(self, answers, written):
        answers.close()
        assert written.calls == [b"head ", None]


class TestWhileMuchIsGoingOn:
    @pytest.fixture
    def answers(self, answers, writes):
        for _ in range(3):
            writes.came()
        return answers

    async def test_pieces_of_one_answer_become_one_write(self, answers, written):
        for piece in (b"first ", b"second ", b"third"):
            answers.write(piece)
        assert not written.calls
        await asyncio.sleep(0)
        assert written.calls == [b"first second third"]

    async def test_a_large_piece_waits_for_nobody_and_passes_nothing(self, answers, written):
        answers.write(b"small ")
        answers.write(large := b"x" * (LARGE + 1))
        answers.write(b"last")
        assert written.calls == [b"small " + large]
        await asyncio.sleep(0)
        assert written.calls == [b"small " + large, b"last"]

    async def test_what_waits_goes_out_before_the_end_of_its_connection(self, answers, written):
        answers.write(b"body")
        answers.close()
        await asyncio.sleep(0)
        assert written.calls == [b"body", None]

    async def test_nothing_is_written_to_a_connection_that_was_ended_at_once(self, answers, written):
        answers.write(b"body")
        answers.abort()
        await asyncio.sleep(0)
        assert written.calls == [None]

    async def test_nothing_is_written_to_a_connection_that_the_tenant_closed(self, answers, written):
        answers.write(b"body")
        written.close()
        await asyncio.sleep(0)
        assert written.calls == [None]


@contextlib.asynccontextmanager
async def question_in_flight():
    """A tenant that has asked, and the endpoint that is to answer."""
    async with (
        ScriptedEndpoint.listening() as endpoint,
        running_gateway(pool_over(endpoint)) as gateway,
        wire(gateway) as tenant,
    ):
        await tenant.send(request_bytes(None, JSON))
        peer = await endpoint.accept()
        await peer.request()
        yield tenant, peer


class TestOnTheWire:
    async def test_a_whole_answer_is_one_write(self, monkeypatch):
        transports = []

        def noting(transport, writes):
            transports.append(Written(transport))
            return Answers(transports[-1], writes)

        monkeypatch.setattr(connection, "Answers", noting)
        async with question_in_flight() as (tenant, peer):
            await peer.answer(b"{}")
            assert (await tenant.answer())[2] == b"{}"
        written = transports[0].calls[0]
        assert written.startswith(b"HTTP/1.1 200 OK\r\n")
        assert written.endswith(b"\r\n\r\n{}")

    async def test_a_stream_has_its_head_before_its_first_event_is_whole(self):
        async with question_in_flight() as (tenant, peer):
            await peer.send(EVENTS + b"6\r\ndata: \r\n")
            status, _ = await tenant.head()
        assert status == 200
