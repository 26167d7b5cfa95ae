"""The head of an answer goes out with the first piece of its body, and never waits for what is yet to come."""

import contextlib

import pytest
from support.gateway import running_gateway
from support.scripted_endpoint import ScriptedEndpoint
from support.tenant import pool_over, request_bytes, wire

from fairpool_gateway.app import connection
from fairpool_gateway.app.connection import Answers

JSON = b"Content-Type: application/json"
EVENTS = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"


class Written:
    """A transport that notes what each call of the system writes, and hands it on to another one, if there is one."""

    def __init__(self, other=None):
        self.calls = []
        self._other = other

    def write(self, data):
        self.writelines([data])

    def writelines(self, pieces):
        self.calls.append(b"".join(pieces))
        if self._other is not None:
            self._other.write(self.calls[-1])

    def is_closing(self):
        return self._other.is_closing()

    def close(self):
        self.calls.append(None)


@pytest.fixture
def written():
    return Written()


@pytest.fixture
def answers(written):
    answers = Answers(written)
    answers.hold_head()
    answers.write(b"head ")
    return answers


class TestAHeadThatIsHeld:
    def test_goes_out_with_what_follows_it(self, answers, written):
        answers.write(b"body")
        answers.write(b"more")
        assert written.calls == [b"head body", b"more"]

    def test_goes_out_with_the_end_of_an_answer_that_has_no_body(self, answers, written):
        answers.write(b"")
        assert written.calls == [b"head "]

    def test_goes_out_by_itself_once_it_is_to_and_not_again(self, answers, written):
        answers.release_head()
        answers.release_head()
        answers.write(b"body")
        assert written.calls == [b"head ", b"body"]

    def test_goes_out_before_the_end_of_its_connection(self, answers, written):
        answers.close()
        assert written.calls == [b"head ", None]

    def test_is_the_only_piece_that_waits(self, answers, written):
        answers.write(b"body")
        answers.hold_head()
        answers.write(b"next ")
        answers.write(b"answer")
        assert written.calls == [b"head body", b"next answer"]


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

        def noting(transport):
            transports.append(Written(transport))
            return Answers(transports[-1])

        monkeypatch.setattr(connection, "Answers", noting)
        async with question_in_flight() as (tenant, peer):
            await peer.answer(b"{}")
            assert (await tenant.answer())[2] == b"{}"
        (transport,) = transports
        (written,) = transport.calls
        assert written.startswith(b"HTTP/1.1 200 OK\r\n")
        assert written.endswith(b"\r\n\r\n{}")

    async def test_a_stream_has_its_head_before_its_first_event_is_whole(self):
        async with question_in_flight() as (tenant, peer):
            await peer.send(EVENTS + b"6\r\ndata: \r\n")
            status, _ = await tenant.head()
        assert status == 200
