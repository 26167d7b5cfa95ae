"""An answer that breaks after its first byte never ends as if it were whole."""

import asyncio
import json
import logging

import httpx
import openai
import pytest
from support.engine import running_engine
from support.gateway import running_gateway
from support.scripted_endpoint import ScriptedEndpoint, until
from support.tenant import CHAT, QUESTION, pool_over, request_bytes, tenant, wire

STREAM_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
CHUNK = {
    "id": "c",
    "object": "chat.completion.chunk",
    "created": 0,
    "model": "sim",
    "choices": [{"index": 0, "delta": {"content": "word"}, "finish_reason": None}],
}
EVENT = b"data: " + json.dumps(CHUNK).encode() + b"\n\n"


@pytest.fixture
async def endpoint():
    async with ScriptedEndpoint.listening() as endpoint:
        yield endpoint


@pytest.fixture
async def gateway(endpoint):
    async with running_gateway(pool_over(endpoint)) as gateway:
        yield gateway


def chunk(data):
    return b"%x\r\n%b\r\n" % (len(data), data)


class TestStreams:
    @pytest.mark.parametrize("api", ["chat", "completions", "responses"])
    async def test_the_official_client_raises_what_happened_after_what_it_got(self, api):
        async with running_engine(fault="truncate:2") as engine, running_gateway(pool_over(engine.url)) as gateway:
            async with tenant(gateway) as client:
                stream = await {
                    "chat": lambda: client.chat.completions.create(**QUESTION, stream=True),
                    "completions": lambda: client.completions.create(model="sim", prompt="x", stream=True),
                    "responses": lambda: client.responses.create(model="sim", input="x", stream=True),
                }[api]()
                seen = 0
                with pytest.raises(openai.APIError, match="The stream broke: ") as told:
                    async for _ in stream:
                        seen += 1
            assert seen == 2
            assert told.value.code == "upstream_failed"
            assert gateway.in_flight == 0
            assert gateway.dispatcher.counts.used == 0

    async def test_a_silence_ends_it_too(self, endpoint):
        async with running_gateway(pool_over(endpoint, timeouts={"idle": "100ms"})) as gateway, wire(gateway) as line:
            await line.send(request_bytes())
            peer = await endpoint.accept()
            await peer.send(STREAM_HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + chunk(EVENT))
            await line.until(b"silent for 0.1 s")
            assert await line.until(b"0\r\n\r\n")
            assert gateway.in_flight == 0

    async def test_what_the_endpoint_began_and_did_not_finish_gives_way_to_the_error(self, gateway, endpoint):
        async with tenant(gateway) as client:
            asking = asyncio.create_task(client.chat.completions.create(**QUESTION, stream=True))
            peer = await endpoint.accept()
            await peer.request()
            await peer.send(STREAM_HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + chunk(EVENT) + chunk(EVENT[:20]))
            stream = await asking
            seen = [(await anext(stream)).choices[0].delta.content]
            peer.reset()
            with pytest.raises(openai.APIError, match="The stream broke: "):
                seen += [event.choices[0].delta.content async for event in stream]
            assert seen == ["word"]

    async def test_its_connection_serves_the_next_request(self, gateway, endpoint):
        async with wire(gateway) as line:
            await line.send(request_bytes())
            peer = await endpoint.accept()
            await peer.send(STREAM_HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + chunk(EVENT))
            peer.end()
            body = await line.until(b"0\r\n\r\n")
            assert b"[DONE]" not in body
            await line.send(request_bytes())
            peer = await endpoint.accept()
            await peer.request()
            await peer.answer(b"next")
            assert (await line.answer())[2] == b"next"

    @pytest.mark.parametrize(
        "header", [b"Content-Length: 1000", b"Content-Encoding: gzip\r\nTransfer-Encoding: chunked"]
    )
    async def test_one_to_which_nothing_can_be_appended_is_cut(self, gateway, endpoint, header):
        async with wire(gateway) as line:
            await line.send(request_bytes())
            peer = await endpoint.accept()
            data = EVENT if b"Length" in header else chunk(EVENT)
            await peer.send(STREAM_HEAD + header + b"\r\n\r\n" + data)
            await line.until(EVENT)
            peer.end()
            assert (await line.rest()).strip() == b""
            await until(lambda: gateway.in_flight == 0)


class TestOtherAnswers:
    async def test_the_official_client_raises_a_connection_error(self):
        async with running_engine(fault="truncate") as engine, running_gateway(pool_over(engine.url)) as gateway:
            async with tenant(gateway) as client:
                with pytest.raises(openai.APIConnectionError):
                    await client.chat.completions.create(**QUESTION)
            assert gateway.in_flight == 0

    @pytest.mark.parametrize("framing", [b"Content-Length: 100", b"Transfer-Encoding: chunked"])
    async def test_what_came_is_passed_on_and_then_the_connection_is_cut(self, gateway, endpoint, framing):
        async with wire(gateway) as line:
            await line.send(request_bytes())
            peer = await endpoint.accept()
            data = b'{"id": "half' if b"Length" in framing else chunk(b'{"id": "half')
            await peer.send(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n" + framing + b"\r\n\r\n" + data)
            await line.until(b'{"id": "half')
            peer.reset()
            assert (await line.rest()).strip() == b""

    async def test_the_slot_comes_back_even_if_the_tenant_takes_nothing(self, gateway, endpoint):
        async with wire(gateway) as line:
            await line.send(request_bytes())
            peer = await endpoint.accept()
            await peer.send(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n")
            while gateway.gateway.client.buffered < 1 << 17:
                await peer.send(bytes(1 << 16))
                await asyncio.sleep(0.001)  # The gateway reads on this loop too.
            assert gateway.in_flight == 1
            peer.reset()
            await until(lambda: gateway.in_flight == 0)


async def test_it_is_logged_once_by_the_gateway_with_the_endpoint_and_without_a_traceback(caplog):
    async with running_engine(fault="truncate") as engine, running_gateway(pool_over(engine.url)) as gateway:
        async with tenant(gateway) as client:
            with pytest.raises(openai.APIConnectionError):
                await client.chat.completions.create(**QUESTION)
        async with httpx.AsyncClient(base_url=gateway.url) as client:
            assert (await client.post(CHAT)).status_code == 401
    said = [record for record in caplog.records if record.levelno >= logging.WARNING]
    assert [record.name for record in said] == ["fairpool_gateway.app.proxy"]
    assert f"broke on e0@127.0.0.1:{engine.port}" in said[0].getMessage()
    assert said[0].exc_info is None
