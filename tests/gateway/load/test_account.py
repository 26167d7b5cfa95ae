"""The account that the tests on a whole cluster keep of their load: it sees whatever does not end as it should."""

import asyncio
import json
from contextlib import asynccontextmanager

import pytest
from support.node.load import Load, client_of, question
from support.scripted_endpoint import ScriptedEndpoint, refusing_port

HEAD = b"HTTP/1.1 %d X\r\nContent-Type: application/json\r\n%bContent-Length: %d\r\n\r\n%b"
STREAM = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"


def whole(finish):
    choice = {"index": 0, "finish_reason": finish, "message": {"role": "assistant", "content": "word"}}
    body = json.dumps({"id": "1", "object": "chat.completion", "created": 1, "model": "sim", "choices": [choice]})
    return HEAD % (200, b"", len(body), body.encode())


def event(finish=None):
    choice = {"index": 0, "finish_reason": finish, "delta": {"content": "word"}}
    body = {"id": "1", "object": "chat.completion.chunk", "created": 1, "model": "sim", "choices": [choice]}
    return b"data: %b\n\n" % json.dumps(body).encode()


def refusal(status, reason=b""):
    header = b"x-fairpool-reason: %b\r\n" % reason if reason else b""
    return HEAD % (status, header, 2, b"{}")


@asynccontextmanager
async def asked(answer, *, stream=False):
    """One request that gets these bytes for an answer, and then the end; yields the account."""
    async with ScriptedEndpoint.listening() as endpoint:
        load = Load("")

        async def serve():
            peer = await endpoint.accept()
            await peer.request()
            await peer.send(answer)
            peer.end()

        async with client_of(f"http://{endpoint.target}/v1", "key") as client:
            serving = asyncio.create_task(serve())
            await load.once(client, stream, question(4))
            await serving
        yield load.account


class TestARequest:
    @pytest.mark.parametrize(
        ("answer", "stream"),
        [(whole("length"), False), (STREAM + event() + event("length") + b"data: [DONE]\n\n", True)],
    )
    async def test_that_is_answered_whole_counts_as_that(self, answer, stream):
        async with asked(answer, stream=stream) as account:
            assert (account.sent, account.answered, account.lost) == (1, 1, [])

    async def test_that_is_refused_with_a_reason_counts_under_it(self):
        async with asked(refusal(429, b"queue_full")) as account:
            assert (account.answered, account.refused, account.lost) == (0, {"429 queue_full": 1}, [])

    @pytest.mark.parametrize(
        ("answer", "stream", "words"),
        [
            (refusal(502), False, "502 without a reason"),
            (b"", False, "after 0 events"),
            (whole("abort"), False, "given up by the engine"),
            (STREAM + event("abort") + b"data: [DONE]\n\n", True, "given up by the engine after 1 events"),
            (STREAM + event(), True, "given up by the engine after 1 events"),
            (STREAM + event() + b'data: {"error": {"message": "it broke"}}\n\n', True, "after 1 events: it broke"),
        ],
    )
    async def test_that_ends_in_any_other_way_is_lost(self, answer, stream, words):
        async with asked(answer, stream=stream) as account:
            (lost,) = account.lost
            assert words in lost
            assert (account.sent, account.answered, account.refused.total()) == (1, 0, 0)

    async def test_that_finds_nobody_is_lost(self):
        load = Load("")
        async with client_of(f"http://{refusing_port()}/v1", "key") as client:
            await load.once(client, False, question(4))
        (lost,) = load.account.lost
        assert lost.startswith("ConnectError after 0 events")
