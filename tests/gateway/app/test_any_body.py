"""Whatever body a tenant sends: it reaches the engine as it was sent or is refused in words, and nothing is lost."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from unittest import mock

import pytest
import uvloop
from hypothesis import given, settings
from hypothesis import strategies as st
from support.answering import AnsweringEndpoint, answering_endpoint
from support.answers import split
from support.forms import BOUNDARY, CONTENT_TYPE, form_of, part, recording
from support.gateway import RunningGateway, running_gateway
from support.tenant import pool_over, request_bytes, wire

from fairpool_gateway.app.body import Bodies
from fairpool_gateway.app.connection import TenantConnection
from fairpool_gateway.config import PATHS
from fairpool_gateway.cost.api import FIELDS

EXTRA = "/generate"
JSON = b"application/json"
REFUSALS = {400, 404}

_TURNS = 20
"""Of the event loop, in which a head that is sent has come and its request begun."""


@dataclass(frozen=True)
class Sent:
    """One request: where to, with which body, in which framing, and whether that comes apart from the head."""

    path: str
    content_type: bytes | None
    body: bytes
    pieces: list[bytes] | None
    apart: bool = False

    def wire(self) -> bytes:
        """Its bytes."""
        headers = [] if self.content_type is None else [b"Content-Type: " + self.content_type]
        if self.pieces is None:
            return request_bytes(self.body, *headers, target=self.path)
        chunks = b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in (*self.pieces, b""))
        return request_bytes(chunks, *headers, target=self.path, framing=b"Transfer-Encoding: chunked")


names = st.sampled_from(
    sorted({"model", "stream", "priority", "messages"}.union(*(f.names() for f in FIELDS.values())))
)
leaves = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9)
values = st.recursive(
    leaves, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3), max_leaves=8
)
objects = st.dictionaries(names, values, max_size=5).map(lambda fields: {**fields, "model": "sim"})
json_bodies = st.one_of(values, objects, objects).flatmap(
    lambda value: st.sampled_from([
        json.dumps(value).encode(),
        json.dumps(value, ensure_ascii=False).encode(errors="surrogatepass"),
        json.dumps(value, indent=1).encode(),
        json.dumps(value).encode("utf-16"),
    ])
)  # fmt: skip
parts = st.builds(
    part,
    st.sampled_from(["model", "file", "stream", "prompt", "priority", "n"]),
    st.binary(max_size=30) | st.sampled_from([b"sim", b"true", b"--" + BOUNDARY]),
    st.none() | st.just("a.wav"),
)
forms = st.lists(parts, max_size=4).map(lambda some: form_of(*some)) | st.builds(recording, st.binary(max_size=60))


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    body = draw(json_bodies | forms)
    at = draw(st.integers(0, len(body)))
    return body[:at] + draw(st.binary(max_size=4)) + body[at + draw(st.integers(0, 4)) :]


@st.composite
def requests(draw: st.DrawFn) -> Sent:
    """Any body to any path, and more often than not one that fits."""
    path = draw(st.sampled_from([*PATHS, EXTRA, EXTRA, "/v1/audio/transcriptions", "/v1/messages"]))
    fitting = forms if "/audio/t" in path else json_bodies | forms if path == EXTRA else json_bodies
    body = draw(fitting | fitting | damaged() | st.binary(max_size=60))
    content_type = draw(st.sampled_from([JSON, CONTENT_TYPE, CONTENT_TYPE, b"text/plain", b"", None]))
    cuts = draw(st.none() | st.lists(st.integers(0, len(body)), max_size=4))
    return Sent(path, content_type, body, None if cuts is None else split(body, cuts), draw(st.booleans()))


@dataclass
class Pool:
    """A gateway and its endpoint, on a loop that runs only while it is asked."""

    runner: asyncio.Runner
    gateway: RunningGateway
    endpoint: AnsweringEndpoint

    def outcome_of(self, sent: Sent) -> tuple[int, bytes | None]:
        """The status of the answer, and the body that reached the engine."""
        return self.runner.run(self._outcome_of(sent))

    async def _outcome_of(self, sent: Sent) -> tuple[int, bytes | None]:
        self.endpoint.asked.clear()
        async with wire(self.gateway) as line:
            head, blank, body = sent.wire().partition(b"\r\n\r\n")
            await line.send(head + blank if sent.apart else head + blank + body)
            if sent.apart:
                for _ in range(_TURNS):
                    await asyncio.sleep(0)
                await line.send(body)
            status, _, _ = await line.answer()
            # The connection is good for the next request, whatever became of this one.
            await line.send(request_bytes())
            assert (await line.answer())[0] == 200
        assert self.gateway.in_flight == self.gateway.dispatcher.admission.bytes == 0
        *reached, _ = self.endpoint.asked
        return status, reached[0][1] if reached else None

    def is_sound(self, sent: Sent) -> bool:
        """Whether the engine got what was sent, or nobody anything but a refusal."""
        status, reached = self.outcome_of(sent)
        return reached == sent.body if status == 200 else status in REFUSALS and reached is None


@pytest.fixture(scope="module")
def pool() -> Iterator[Pool]:
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner, contextlib.ExitStack() as stack:
        both = contextlib.AsyncExitStack()

        async def start() -> Pool:
            endpoint = await both.enter_async_context(answering_endpoint())
            gateway = await both.enter_async_context(running_gateway(pool_over(endpoint.url, extraPaths=[EXTRA])))
            return Pool(runner, gateway, endpoint)

        stack.callback(lambda: runner.run(both.aclose()))
        yield runner.run(start())


@settings(max_examples=400, deadline=None)
@given(sent=requests())
def test_it_reaches_the_engine_as_it_was_sent_or_is_refused(pool: Pool, sent: Sent):
    assert pool.is_sound(sent)


def test_many_of_these_are_served(pool: Pool):
    served = []

    @settings(max_examples=100, deadline=None, database=None, derandomize=True)
    @given(sent=requests())
    def count(sent: Sent) -> None:
        served.append(pool.outcome_of(sent)[0] == 200)

    count()
    assert len(served) / 4 < sum(served) < len(served)


class TestNegativeControls:
    BODY = Sent("/v1/chat/completions", JSON, b'{"model": "sim",  "messages": []}', None)
    LATE = replace(BODY, apart=True)

    def test_a_body_that_comes_later_and_is_written_anew_is_caught(self, pool: Pool):
        read = Bodies.read

        async def rewritten(*arguments, **options):
            body, shape = await read(*arguments, **options)
            return json.dumps(json.loads(body)).encode(), shape

        assert pool.is_sound(self.LATE)
        with mock.patch.object(Bodies, "read", rewritten):
            assert not pool.is_sound(self.LATE)

    def test_so_is_one_that_comes_at_once(self, pool: Pool):
        at_hand = TenantConnection.body_at_hand

        def rewritten(connection):
            body = at_hand(connection)
            return body and json.dumps(json.loads(body)).encode()

        assert pool.is_sound(self.BODY)
        with mock.patch.object(TenantConnection, "body_at_hand", rewritten):
            assert not pool.is_sound(self.BODY)

    @pytest.mark.parametrize(("way", "sent"), [("at_hand", BODY), ("read", LATE)])
    def test_so_is_a_fault_of_the_gateway(self, pool: Pool, way, sent):
        with mock.patch.object(Bodies, way, side_effect=KeyError("model")):
            try:
                caught = not pool.is_sound(sent)
            except AssertionError:  # The request after it fails too.
                caught = True
        assert caught
