"""What is no HTTP is refused like anything else, after the answers to what came before it; nothing of it stays."""

import json
import re

import pytest
from support.answering import answering_endpoint
from support.config import digest_of
from support.gateway import running_gateway
from support.scripted_endpoint import ScriptedEndpoint, until
from support.tenant import QUESTION, pool_over, request_bytes, wire

from fairpool_gateway.app.protocol import MAX_HEAD

BODY = json.dumps(QUESTION).encode()
IN_CHUNKS = b"Transfer-Encoding: chunked"


@pytest.fixture
async def endpoint():
    async with answering_endpoint() as endpoint:
        yield endpoint


@pytest.fixture
async def gateway(endpoint):
    async with running_gateway(pool_over(endpoint.url)) as gateway:
        yield gateway


def chunk(data):
    return b"%x\r\n%b\r\n" % (len(data), data)


async def assert_refused(line, status, reason):
    """The connection's last answer is this refusal; returns its headers."""
    told, headers, body = await line.answer()
    assert (told, dict(headers)[b"x-fairpool-reason"]) == (status, reason.encode())
    assert set(json.loads(body)["error"]) == {"message", "type", "param", "code"}
    assert json.loads(body)["error"]["code"] == reason
    assert dict(headers)[b"connection"] == b"close"
    assert await line.rest() == b""
    return dict(headers)


class TestBeforeThereIsARequest:
    @pytest.mark.parametrize(
        "sent",
        [
            b"SSH-2.0-client\r\n\r\n",
            b"\x16\x03\x01\x02\x00\x01\x00\x01",
            b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
            b"POST\r\n\r\n",
            b"POST /v1/chat/completions HTTP/1.1\r\nhost: pool\r\nno colon\r\n\r\n",
            b"POST /v1/chat/completions HTTP/1.1\r\ncontent-length: -1\r\n\r\n",
            b"POST /v1/chat/completions HTTP/1.1\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n",
            b"POST /v1/chat/completions HTTP/1.1\r\ncontent-length: 1\r\ntransfer-encoding: chunked\r\n\r\n",
            b"POST /\xff HTTP/1.1\r\nhost: pool\r\n\r\n",
            b"CONNECT engine:443 HTTP/1.1\r\nhost: engine:443\r\n\r\n",
        ],
    )
    async def test_it_is_400_in_the_usual_form_with_an_id_by_which_it_is_found(self, gateway, sent):
        async with wire(gateway) as line:
            await line.send(sent)
            headers = await assert_refused(line, 400, "invalid_request")
        assert gateway.outcomes == {"invalid_request": 1}
        asked_for = headers[b"x-request-id"].decode()
        (refusal,) = (await gateway.admin(f"/debug/requests?request={asked_for}")).json()["refusals"]
        assert (refusal["tenant"], refusal["reason"]) == (None, "invalid_request")

    @pytest.mark.parametrize("target", [b"OPTIONS *", b"CONNECT /", b"TRACE /"])
    async def test_http_of_no_use_here_is_404(self, gateway, target):
        async with wire(gateway) as line:
            await line.send(b"%b HTTP/1.1\r\nhost: pool\r\n\r\n" % target)
            status, headers, _ = await line.answer()
        assert (status, dict(headers)[b"x-fairpool-reason"]) == (404, b"not_found")

    async def test_headers_that_are_too_large_are_431_likewise(self, gateway):
        async with wire(gateway) as line:
            await line.send(request_bytes(b"", b"x-long: " + b"y" * MAX_HEAD)[: MAX_HEAD + 1])
            headers = await assert_refused(line, 431, "headers_too_large")
        assert re.fullmatch(rb"req-[0-9a-f]+-\d+", headers[b"x-request-id"])
        assert gateway.outcomes == {"headers_too_large": 1}


class TestBehindARequest:
    GARBAGE = b"\x00no HTTP\r\n\r\n"

    async def test_that_was_answered_it_is_400_too(self, gateway):
        async with wire(gateway) as line:
            await line.send(request_bytes())
            assert (await line.answer())[0] == 200
            await line.send(self.GARBAGE)
            await assert_refused(line, 400, "invalid_request")

    @pytest.mark.parametrize("at_once", [True, False], ids=["at once", "later"])
    async def test_in_flight_that_is_answered_and_nothing_else(self, gateway, endpoint, at_once):
        endpoint.may_answer.clear()
        async with wire(gateway) as line:
            await line.send(request_bytes() + (self.GARBAGE if at_once else b""))
            await until(lambda: endpoint.asked)
            await line.send(self.GARBAGE)
            endpoint.may_answer.set()
            status, _, body = await line.answer()
            assert (status, body) == (200, endpoint.answer)
            assert await line.rest() == b""
        await until(lambda: not gateway.in_flight)
        assert gateway.outcomes == {"answered": 1}

    async def test_in_the_middle_of_a_stream_changes_no_byte_of_it(self):
        async with (
            ScriptedEndpoint.listening() as endpoint,
            running_gateway(pool_over(endpoint)) as gateway,
            wire(gateway) as line,
        ):
            await line.send(request_bytes())
            peer = await endpoint.accept()
            await peer.request()
            event = b"data: {}\n\n"
            await peer.send(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n" + event)
            await line.head()
            assert await line.exactly(len(chunk(event))) == chunk(event)
            await line.send(self.GARBAGE)
            await peer.send(event)
            peer.end()
            assert await line.rest() == chunk(event) + b"0\r\n\r\n"

    async def test_all_that_came_before_it_are_answered_in_their_order(self, gateway, endpoint):
        async with wire(gateway) as line:
            await line.send(request_bytes() + request_bytes(target="/v1/none") + self.GARBAGE)
            assert [(await line.answer())[0] for _ in range(2)] == [200, 404]
            assert await line.rest() == b""


class TestInABody:
    @pytest.mark.parametrize("piece", [b"", chunk(BODY[:9])], ids=["at its begin", "later"])
    @pytest.mark.parametrize("apart", [False, True], ids=["with the head", "apart"])
    async def test_chunks_that_cannot_be_told_apart_are_its_tenants_fault(self, gateway, endpoint, piece, apart):
        async with wire(gateway) as line:
            await line.send(request_bytes(piece, b"X-Request-Id: mine", framing=IN_CHUNKS))
            if apart:
                await until(lambda: gateway.dispatcher.admission.bytes == len(piece and BODY[:9]))
            await line.send(b"what is this?\r\n" + chunk(b""))
            headers = await assert_refused(line, 400, "invalid_request")
        assert headers[b"x-request-id"] == b"mine"
        assert gateway.gateway.tally_of("a").outcomes == {"invalid_request": 1}
        assert gateway.dispatcher.admission.bytes == 0
        assert not endpoint.asked

    async def test_of_a_request_that_waits_for_its_turn_they_are_told_in_turn(self, gateway, endpoint):
        endpoint.may_answer.clear()
        async with wire(gateway) as line:
            await line.send(request_bytes() + request_bytes(chunk(BODY[:9]) + b"what?\r\n", framing=IN_CHUNKS))
            await until(lambda: endpoint.asked)
            endpoint.may_answer.set()
            assert (await line.answer())[0] == 200
            await assert_refused(line, 400, "invalid_request")

    async def test_of_a_request_that_was_refused_they_end_the_connection(self, gateway):
        async with wire(gateway) as line:
            await line.send(request_bytes(chunk(BODY[:9]), framing=IN_CHUNKS, name=None))
            assert (await line.answer())[0] == 401
            await line.send(b"what is this?\r\n")
            assert await line.rest() == b""

    @pytest.mark.parametrize("endless", [b"x: " + b"y" * MAX_HEAD, b"x: y\r\n" * MAX_HEAD], ids=["one", "many"])
    async def test_trailers_without_end_are_refused_before_long(self, gateway, endless):
        async with wire(gateway) as line:
            await line.send(request_bytes(chunk(BODY) + b"0\r\n", framing=IN_CHUNKS))
            await until(lambda: gateway.dispatcher.admission.bytes == len(BODY))
            await line.send(endless)
            await assert_refused(line, 400, "invalid_request")
        assert gateway.dispatcher.admission.bytes == 0


class TestTrailers:
    """What follows a body was not there when its sender was found out, and must not become a header afterwards."""

    TRAILERS = (
        b"Authorization: Bearer key-of-a\r\nContent-Encoding: gzip\r\nX-Trailer: 1\r\n"
        b"X-FairPool-Proxy-Credential: the proxy\r\nX-Tenant: a\r\n"
    )
    SENT = chunk(BODY) + b"0\r\n" + TRAILERS + b"\r\n"

    async def test_never_reach_the_engine(self, gateway, endpoint):
        async with wire(gateway) as line:
            await line.send(request_bytes(self.SENT, framing=IN_CHUNKS))
            assert (await line.answer())[0] == 200
        head, body = endpoint.asked[0]
        assert body == BODY
        assert not re.search(rb"trailer|gzip|key-of|tenant", head)

    async def test_identify_nobody(self, gateway):
        async with wire(gateway) as line:
            await line.send(request_bytes(self.SENT, framing=IN_CHUNKS, name=None))
            assert (await line.answer())[0] == 401

    async def test_speak_for_no_proxy(self, endpoint):
        trusted = {"type": "TrustedHeader", "header": "x-tenant", "proxyCredential": {"digest": digest_of("the proxy")}}
        async with running_gateway(pool_over(endpoint.url, authentication=trusted)) as gateway, wire(gateway) as line:
            await line.send(request_bytes(self.SENT, framing=IN_CHUNKS, name=None))
            assert (await line.answer())[0] == 401
        assert not endpoint.asked


async def test_the_admin_port_refuses_it_in_the_same_form(gateway):
    async with wire(gateway, gateway.admin_port) as line:
        await line.send(b"no HTTP\r\n\r\n")
        await assert_refused(line, 400, "invalid_request")
    assert not gateway.outcomes
