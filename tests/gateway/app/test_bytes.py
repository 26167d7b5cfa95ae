"""What passes, byte by byte: an endpoint that is scripted, a tenant that is a socket."""

import asyncio
import json

import pytest
from support.config import key_of
from support.gateway import running_gateway
from support.scripted_endpoint import ScriptedEndpoint, until
from support.tenant import QUESTION, pool_over, request_bytes, wire

from fairpool_gateway.app.connection import TenantConnection

BODY = json.dumps(QUESTION).encode()


@pytest.fixture
async def endpoint():
    async with ScriptedEndpoint.listening() as endpoint:
        yield endpoint


@pytest.fixture
async def gateway(endpoint):
    async with running_gateway(pool_over(endpoint)) as gateway:
        yield gateway


@pytest.fixture
async def line(gateway):
    async with wire(gateway) as line:
        yield line


@pytest.fixture
def arrived(monkeypatch):
    """The length of each piece that the gateway reads of what a tenant sends."""
    lengths = []
    receive = TenantConnection.data_received

    def count(connection, data):
        lengths.append(len(data))
        receive(connection, data)

    monkeypatch.setattr(TenantConnection, "data_received", count)
    return lengths


def parsed(head):
    """The request line, and the headers with names in lower case."""
    first, *lines = head.removesuffix(b"\r\n\r\n").split(b"\r\n")
    pairs = [line.split(b": ", 1) for line in lines]
    return first, [(name.lower(), value) for name, value in pairs]


def chunked(*pieces):
    return b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in (*pieces, b""))


class TestRequests:
    async def test_the_endpoint_gets_the_body_as_it_was_sent_and_every_header_that_is_its_business(
        self, endpoint, gateway, line
    ):
        odd = b'{ "model" : "sim",\n "messages":[], "unknown": "\\u00e9 \xc3\xa9", "max_tokens": 3 }'
        given = (b"Accept: */*", b"X-Twice: 1", b"X-Odd: c=\xe9", b"X-Twice: 2", b"traceparent: 00-0af7-b7ad-01")
        own = (b"X-Api-Key: " + key_of("a").encode(), b"X-FairPool-Weight: 1000", b"Keep-Alive: 5", b"TE: trailers")
        await line.send(request_bytes(odd, *given, *own, b"Connection: X-Hop", b"X-Hop: 1", b"X-Request-Id: mine"))
        peer = await endpoint.accept()
        head, body = await peer.request()
        assert body == odd
        assert parsed(head) == (
            b"POST /v1/chat/completions HTTP/1.1",
            [
                (b"host", str(endpoint.target).encode()),
                (b"accept", b"*/*"),
                (b"x-twice", b"1"),
                (b"x-odd", b"c=\xe9"),
                (b"x-twice", b"2"),
                (b"traceparent", b"00-0af7-b7ad-01"),
                (b"x-request-id", b"mine"),
                (b"content-length", b"%d" % len(odd)),
            ],
        )
        await peer.answer()

    async def test_the_query_is_kept(self, endpoint, gateway, line):
        await line.send(request_bytes(target="/v1/chat/completions?api-version=1&x=%20a&&y"))
        head, _ = await (await endpoint.accept()).request()
        assert head.startswith(b"POST /v1/chat/completions?api-version=1&x=%20a&&y HTTP/1.1\r\n")

    @pytest.mark.parametrize(
        ("sent", "reaches"),
        [
            ("api-version=1&api-key={key}", "api-version=1"),
            ("api_key=other&x=1", "x=1"),
            ("API%2DKey=other&&x=1&", "&x=1&"),
            ("X-Api-Key=other", ""),
            ("Authorization=Bearer+{key}&x", "x"),
            ("access_token=other&y=2", "y=2"),
            ("k={key}&y=2", "y=2"),
            ("y=2&k=%6b{rest}", "y=2"),
            ("y=2;k={key}&z=3", "z=3"),
            ("x-fairpool-weight=1000&X-FairPool-Tenant=b&y=2", "y=2"),
            ("keys=1&my_api_key_id=2&author=3", "keys=1&my_api_key_id=2&author=3"),
        ],
    )
    async def test_no_credential_and_no_claim_to_be_fairpool_is_in_the_query(
        self, endpoint, gateway, line, sent, reaches
    ):
        key = key_of("a")
        await line.send(request_bytes(target=f"/v1/chat/completions?{sent.format(key=key, rest=key[1:])}"))
        head, _ = await (await endpoint.accept()).request()
        assert head.split(b" ")[1].partition(b"?")[2] == reaches.encode()
        assert key.encode() not in head

    async def test_a_path_written_otherwise_reaches_the_endpoint_as_it_was_allowed(self, endpoint, gateway, line):
        await line.send(request_bytes(target="/v1/chat%2Fcompletions"))
        head, _ = await (await endpoint.accept()).request()
        assert head.startswith(b"POST /v1/chat/completions HTTP/1.1\r\n")

    async def test_a_chunked_upload_reaches_the_endpoint_with_a_length(self, endpoint, gateway, line):
        await line.send(request_bytes(chunked(BODY[:10], BODY[10:]), framing=b"Transfer-Encoding: chunked"))
        head, body = await (await endpoint.accept()).request()
        assert body == BODY
        assert dict(parsed(head)[1])[b"content-length"] == b"%d" % len(BODY)
        assert b"transfer-encoding" not in head.lower()

    async def test_a_tenant_that_asks_first_is_told_to_go_on(self, endpoint, gateway, line):
        whole = request_bytes(BODY, b"Expect: 100-continue")
        await line.send(whole.removesuffix(BODY))
        assert await line.until(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
        await line.send(BODY)
        head, body = await (await endpoint.accept()).request()
        assert body == BODY
        assert b"expect" not in head.lower()

    async def test_an_offer_to_speak_another_protocol_is_passed_over(self, endpoint, gateway, line):
        offer = (b"Connection: Upgrade, HTTP2-Settings", b"Upgrade: h2c", b"HTTP2-Settings: AAEAAEAAAAIAAAAB")
        body = BODY.replace(b"hello", b"Upgrade: this")
        peer = None
        for _ in range(2):
            await line.send(request_bytes(body, *offer))
            peer = peer or await endpoint.accept()
            head, came = await peer.request()
            assert came == body
            assert b"upgrade" not in head.lower()
            assert b"settings" not in head.lower()
            await peer.answer(b"as ever")
            assert (await line.answer())[2] == b"as ever"

    @pytest.mark.parametrize("before", [b"Upg", b"Upgrade", b"Upgrade:", b"HTTP2-Settings: AAEA", b"\r\n\r\n", b"hel"])
    async def test_so_is_one_that_comes_in_two_pieces(self, endpoint, arrived, line, before):
        offer = (b"Connection: Upgrade, HTTP2-Settings", b"Upgrade: h2c", b"HTTP2-Settings: AAEAAEAAAAIAAAAB")
        whole = request_bytes(BODY, *offer)
        cut = whole.index(before) + len(before)
        await line.send(whole[:cut])
        await until(lambda: sum(arrived) >= cut)
        await line.send(whole[cut:])
        peer = await endpoint.accept()
        assert (await peer.request())[1] == BODY
        await peer.answer(b"as ever")
        assert (await line.answer())[2] == b"as ever"

    async def test_so_is_one_behind_another_request(self, endpoint, gateway, line):
        offer = (b"Connection: Upgrade", b"Upgrade: h2c")
        await line.send(request_bytes(BODY) + request_bytes(BODY, *offer) + request_bytes(BODY))
        peer = await endpoint.accept()
        for _ in range(3):
            assert (await peer.request())[1] == BODY
            await peer.answer(b"as ever")
            assert (await line.answer())[2] == b"as ever"

    async def test_a_body_of_megabytes_arrives_whole(self, endpoint, gateway, line):
        large = json.dumps({**QUESTION, "messages": [{"role": "user", "content": "x" * (3 << 20)}]}).encode()
        sending = asyncio.create_task(line.send(request_bytes(large)))
        _, body = await (await endpoint.accept()).request()
        assert body == large
        await sending

    async def test_requests_on_one_connection_are_answered_in_their_order(self, endpoint, gateway, line):
        await line.send(request_bytes() + request_bytes())
        peer = await endpoint.accept()
        for answer in (b"first", b"second"):
            await peer.request()
            await peer.answer(answer)
            assert (await line.answer())[2] == answer


class TestAnswers:
    async def ask(self, endpoint, line):
        await line.send(request_bytes())
        peer = await endpoint.accept()
        await peer.request()
        return peer

    async def test_status_headers_and_body_come_as_the_endpoint_sent_them(self, endpoint, gateway, line):
        peer = await self.ask(endpoint, line)
        headers = b"Set-Cookie: a=1\r\nX-Odd: caf\xe9\tb\r\nDate: today\r\nServer: engine\r\nSet-Cookie: b=2\r\n"
        await peer.send(
            b"HTTP/1.1 418 Odd\r\n%bContent-Length: 4\r\nKeep-Alive: timeout=5\r\n\r\n\x00\xff\r\n" % headers
        )
        status, came, body = await line.answer()
        assert status == 418
        assert body == b"\x00\xff\r\n"
        assert came[:-2] == [
            (b"set-cookie", b"a=1"),
            (b"x-odd", b"caf\xe9\tb"),
            (b"date", b"today"),
            (b"server", b"engine"),
            (b"set-cookie", b"b=2"),
            (b"content-length", b"4"),
        ]
        assert [name for name, _ in came[-2:]] == [b"x-request-id", b"server-timing"]

    @pytest.mark.parametrize("framing", ["chunked", "until close"])
    async def test_a_body_without_a_length_comes_in_chunks(self, endpoint, gateway, line, framing):
        peer = await self.ask(endpoint, line)
        if framing == "chunked":
            await peer.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + chunked(b"one", b"two"))
        else:
            await peer.send(b"HTTP/1.1 200 OK\r\n\r\nonetwo")
            peer.end()
        status, headers = await line.head()
        assert (status, dict(headers)[b"transfer-encoding"]) == (200, b"chunked")
        body = await line.until(b"0\r\n\r\n")
        assert b"".join(body.split(b"\r\n")[1:-2:2]) == b"onetwo"

    async def test_an_event_passes_before_the_next_one_exists(self, endpoint, gateway, line):
        peer = await self.ask(endpoint, line)
        await peer.send(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
        for number in range(3):
            event = b"data: {%d}\n\n" % number
            await peer.send(b"%x\r\n%b\r\n" % (len(event), event))
            if not number:
                await line.head()
            assert await line.until(event + b"\r\n") == b"%x\r\n%b\r\n" % (len(event), event)

    async def test_a_comment_that_keeps_a_stream_alive_passes_at_once_and_counts_for_nothing(
        self, endpoint, gateway, line
    ):
        """llama.cpp sends one for each half a minute without a token; where it comes first it is the first byte."""
        peer = await self.ask(endpoint, line)
        await peer.send(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
        word = b'data: {"choices":[{"index":0,"delta":{"content":"a"}}]}\n\n'
        for number, event in enumerate((b":\n\n", word, b":\n\n")):
            await peer.send(b"%x\r\n%b\r\n" % (len(event), event))
            if not number:
                await line.head()
            assert await line.until(event + b"\r\n") == b"%x\r\n%b\r\n" % (len(event), event)
        await peer.send(chunked(b"data: [DONE]\n\n"))
        await line.until(b"0\r\n\r\n")
        await until(lambda: gateway.in_flight == 0)
        assert gateway.dispatcher.counts.output == 1

    async def test_an_answer_without_a_body_comes_without_one(self, endpoint, gateway, line):
        peer = await self.ask(endpoint, line)
        await peer.send(b"HTTP/1.1 204 No Content\r\n\r\n")
        assert (await line.head())[0] == 204
        await line.send(request_bytes())
        await peer.request()
        await peer.answer(b"next")
        assert (await line.answer())[2] == b"next"

    @pytest.mark.parametrize("status", [b"204 No Content", b"304 Not Modified"])
    async def test_nor_with_the_length_of_one_though_it_says_so(self, endpoint, gateway, line, status):
        peer = await self.ask(endpoint, line)
        await peer.send(b"HTTP/1.1 %b\r\nContent-Length: 5\r\nX-Other: 1\r\n\r\n" % status)
        told, headers = await line.head()
        assert b"%d" % told == status[:3]
        assert b"content-length" not in dict(headers)
        assert dict(headers)[b"x-other"] == b"1"
        assert gateway.outcomes == {"answered": 1}

    async def test_one_tenants_cookie_is_never_sent_for_another(self, endpoint, gateway, line):
        peer = await self.ask(endpoint, line)
        await peer.answer(headers=b"Set-Cookie: session=of-a\r\n")
        await line.answer()
        async with wire(gateway) as other:
            await other.send(request_bytes(name="b"))
            head, _ = await peer.request()
            assert b"of-a" not in head
            await peer.answer()
            assert b"of-a" not in str(await other.answer()).encode()

    async def test_the_slot_is_free_at_the_last_byte(self, endpoint, gateway, line):
        peer = await self.ask(endpoint, line)
        assert gateway.in_flight == 1
        await peer.answer()
        await line.answer()
        await until(lambda: gateway.in_flight == 0)

    async def test_what_is_no_success_teaches_nothing_whatever_it_says_it_used(self, endpoint, gateway, line):
        peer = await self.ask(endpoint, line)
        said = b'{"usage": {"prompt_tokens": 7, "completion_tokens": 7}}'
        length = b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(said)
        await peer.send(b"HTTP/1.1 500 Internal Server Error\r\n" + length + said)
        assert (await line.answer())[0] == 500
        assert gateway.dispatcher.counts.used == 0
        assert not gateway.dispatcher.estimator._tenants
