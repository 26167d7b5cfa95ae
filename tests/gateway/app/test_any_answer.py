"""Whatever an engine answers: its tenant gets what it sent, or is told that it broke, and no slot is lost."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from unittest import mock

import pytest
import uvloop
from hypothesis import given, settings
from hypothesis import strategies as st
from support.any_answer import Reader, Script, Seen, cut_off, nonsense, seen_directly, whole
from support.gateway import RunningGateway, running_gateway
from support.scripted_endpoint import Peer, ScriptedEndpoint, until
from support.tenant import Wire, pool_over, request_bytes, wire

from fairpool_gateway.app import headers as passing
from fairpool_gateway.app.events import WholeEvents
from fairpool_gateway.dispatcher import Dispatcher, State
from fairpool_gateway.upstream.message import MAX_HEAD, Message

OF_THE_CONNECTION = {b"connection", b"keep-alive", b"trailer", b"transfer-encoding", b"te", b"upgrade"}
OF_THE_GATEWAY = {b"x-request-id", b"server-timing"}
EVENTS_END = re.compile(rb".*(?:\n\n|\n\r\n|\r\r)", re.DOTALL)
NEXT = Script(b'HTTP/1.1 200 OK\r\nContent-Length: 15\r\n\r\n{"next": "one"}')


@dataclass
class Pool:
    """A gateway and an endpoint that follows a script, on a loop that runs only while it is asked."""

    runner: asyncio.Runner
    gateway: RunningGateway
    script: Script = NEXT

    async def serve(self, endpoint: ScriptedEndpoint) -> None:
        """Answer the request `odd` by the script, as often as it comes, and any other one well."""
        async with asyncio.TaskGroup() as connections:
            while True:
                with contextlib.suppress(TimeoutError):
                    connections.create_task(self._follow(await endpoint.accept()))

    async def _follow(self, peer: Peer) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError, TimeoutError):
            while True:
                head, _ = await peer.request()
                script = self.script if b"x-request-id: odd\r\n" in head else NEXT
                for segment in script.segments:
                    await peer.send(segment)
                    await asyncio.sleep(0)
                if script.then == "end":
                    peer.end()
                elif script.then == "reset":
                    peer.reset()

    def through(self, script: Script) -> Seen:
        """What the tenant sees. Its next request is served as if nothing had been, and every slot is back."""
        return self.runner.run(self._through(script))

    async def _through(self, script: Script) -> Seen:
        self.script = script
        async with contextlib.AsyncExitStack() as stack:
            line = await stack.enter_async_context(wire(self.gateway))
            seen = await self._ask(line, b"odd")
            await until(lambda: self.gateway.in_flight == 0)
            if not seen.complete or seen.header(b"connection") == b"close":
                assert await line.rest() == b""
                line = await stack.enter_async_context(wire(self.gateway))
            after = await self._ask(line, b"next")
        assert (after.status, after.body, after.complete) == (200, b'{"next": "one"}', True)
        await until(lambda: self.gateway.in_flight == 0)
        assert self.gateway.gateway.client.buffered == 0
        return seen

    async def _ask(self, line: Wire, request_id: bytes) -> Seen:
        await line.send(request_bytes(None, b"X-Request-Id: " + request_id))
        reader = Reader()
        while not reader.seen.complete and reader.seen.valid:
            data = await line.some()
            reader.feed(data)
            if not data:
                break
        return reader.seen

    def passes(self, script: Script) -> bool:
        """Whether the tenant sees what it would see of the endpoint itself, or hears that there is less."""
        direct, seen = seen_directly(script), self.through(script)
        if not direct.valid or not direct.began or direct.size_of_headers > MAX_HEAD:
            return _is_told(seen)
        if not _is_passed_on(direct, seen):
            return script.then == "reset" and not direct.complete and _is_told(seen)
        if direct.complete:
            return seen.complete and seen.body == direct.body
        if not _can_be_told_at_its_end(direct):
            return not seen.complete and _is_prefix(seen.body, direct.body, script)
        events, error = _without_error(seen.body)
        whole_events = EVENTS_END.match(direct.body)
        return seen.complete and error and _is_prefix(events, whole_events[0] if whole_events else b"", script)


def _is_told(seen: Seen) -> bool:
    """Whether it is the refusal for an endpoint that gave no answer."""
    return (seen.status, seen.header(b"x-fairpool-reason"), seen.complete) == (502, b"upstream_failed", True)


def _is_passed_on(direct: Seen, seen: Seen) -> bool:
    """Whether status and headers are the endpoint's: their order, repeats and bytes, but what is of the connection."""
    stopped = {*OF_THE_CONNECTION, *OF_THE_GATEWAY}
    for name, value in direct.headers:
        if name == b"connection":
            stopped.update(token.strip().lower() for token in value.split(b","))
    came = [header for header in seen.headers if header[0] not in OF_THE_CONNECTION]
    gateways_own = [name for name, _ in came[-2:]] == [b"x-request-id", b"server-timing"]
    if direct.status in {204, 304}:
        stopped.add(b"content-length")  # It would be the length of something that is not there.
    passed = [header for header in direct.headers if header[0] not in stopped]
    return seen.status == direct.status and gateways_own and came[:-2] == passed


def _can_be_told_at_its_end(direct: Seen) -> bool:
    media_type = (direct.header(b"content-type") or b"").partition(b";")[0].strip().lower()
    plain = (direct.header(b"content-encoding") or b"identity").strip().lower() == b"identity"
    return media_type == b"text/event-stream" and plain and direct.header(b"content-length") is None


def _without_error(body: bytes) -> tuple[bytes, bool]:
    """A stream without the event that tells of its break, and whether there was one."""
    events, mark, told = body.rpartition(b'data: {"error":')
    if not mark or not told.endswith(b"\n\n"):
        return body, False
    return events, "The stream broke" in json.loads(b'{"error":' + told)["error"]["message"]


def _is_prefix(part: bytes, of: bytes, script: Script) -> bool:
    """Whether it is all that came; a reset may overtake what was sent before it."""
    return of.startswith(part) if script.then == "reset" else part == of


@pytest.fixture(scope="module")
def pool() -> Iterator[Pool]:
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner, contextlib.ExitStack() as stack:
        both = contextlib.AsyncExitStack()

        async def start() -> Pool:
            endpoint = await both.enter_async_context(ScriptedEndpoint.listening())
            pool = Pool(runner, await both.enter_async_context(running_gateway(pool_over(endpoint))))
            serving = asyncio.create_task(pool.serve(endpoint))

            async def end() -> None:
                serving.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await serving

            both.push_async_callback(end)
            return pool

        stack.callback(lambda: runner.run(both.aclose()))
        yield runner.run(start())


class TestProperties:
    @settings(max_examples=120, deadline=None)
    @given(script=whole())
    def test_an_answer_that_has_an_end_arrives_as_it_was_sent(self, pool: Pool, script: Script):
        assert pool.passes(script)

    @settings(max_examples=120, deadline=None)
    @given(script=cut_off())
    def test_one_that_is_cut_off_anywhere_never_looks_whole(self, pool: Pool, script: Script):
        assert pool.passes(script)

    @settings(max_examples=120, deadline=None)
    @given(script=nonsense())
    def test_nonsense_is_the_endpoints_fault_and_nobody_elses(self, pool: Pool, script: Script):
        seen = pool.through(script)
        assert seen.valid
        # What the gateway answers by itself has its reason on it, and never says that the gateway failed.
        reason = seen.header(b"x-fairpool-reason")
        assert reason is None or _is_told(seen)
        assert seen.status or not seen.complete


def test_they_reach_all_that_can_happen(pool: Pool):
    kinds = set()

    @settings(max_examples=120, deadline=None, database=None, derandomize=True)
    @given(script=st.one_of(whole(), cut_off()))
    def note(script: Script) -> None:
        direct = seen_directly(script)
        kinds.add((direct.began, direct.complete, direct.began and _can_be_told_at_its_end(direct)))

    note()
    assert kinds == {
        (False, False, False),
        (True, True, False),
        (True, True, True),
        (True, False, False),
        (True, False, True),
    }


HEAD = b"HTTP/1.1 200 OK\r\nSet-Cookie: a=1\r\nSet-Cookie: b=2\r\n"
STREAM = HEAD + b"Content-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"


class TestNegativeControls:
    WHOLE = Script(STREAM + b"c\r\ndata: {}\r\n\r\n\r\n0\r\n\r\n")
    SHORT = Script(HEAD + b"Content-Length: 5\r\n\r\nonly", then="end")
    CUT = Script(HEAD + b"Transfer-Encoding: chunked\r\n\r\n3\r\none\r\n", then="end")

    @pytest.fixture(autouse=True)
    def sound(self, pool: Pool):
        for script in (self.WHOLE, self.SHORT, self.CUT):
            assert pool.passes(script)

    def test_headers_that_are_merged_are_caught(self, pool: Pool):
        right = passing.for_tenant

        def merged(*arguments, **options):
            return list(dict(right(*arguments, **options)).items())

        with mock.patch.object(passing, "for_tenant", merged):
            assert not pool.passes(self.WHOLE)

    def test_so_are_line_ends_that_are_made_alike(self, pool: Pool):
        last = WholeEvents.last

        def alike(self, data):
            return last(self, data).replace(b"\r\n", b"\n")

        with mock.patch.object(WholeEvents, "last", alike):
            assert not pool.passes(self.WHOLE)

    def test_so_is_an_answer_that_broke_and_is_passed_on_as_whole(self, pool: Pool):
        def takes_any_end(self):
            self.complete = True

        with mock.patch.object(Message, "feed_eof", takes_any_end):
            assert not pool.passes(self.CUT)

    def test_so_is_a_slot_that_is_lost_with_a_broken_length(self, pool: Pool):
        cancel = Dispatcher.cancel
        kept = []

        def keeps(self, now, request, *, seen=None):
            if request.state is not State.IN_FLIGHT:
                return cancel(self, now, request, seen=seen)
            kept.append(request)
            return []

        with mock.patch.object(Dispatcher, "cancel", keeps), pytest.raises(TimeoutError), _in_a_hurry():
            pool.through(self.SHORT)
        for request in kept:
            pool.gateway.dispatcher.complete(0.0, request, None)


@contextlib.contextmanager
def _in_a_hurry():
    with mock.patch("support.scripted_endpoint.PATIENCE", 0.3):
        yield
