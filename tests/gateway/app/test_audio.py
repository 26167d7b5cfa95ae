"""Audio files reach an engine as they were sent, and their forms are read on the way."""

import asyncio
from email import message_from_bytes
from email.policy import HTTP

import openai
import pytest
from support.answering import answering_endpoint
from support.config import key_of
from support.engine_streams import TRANSCRIPT, VLLM_CHAT, VLLM_USAGE
from support.forms import BOUNDARY, CONTENT_TYPE, form_of, part, recording
from support.gateway import running_gateway
from support.scripted_endpoint import ScriptedEndpoint
from support.tenant import pool_over, request_bytes, tenant, wire

from fairpool_gateway.cost.form import FILE_BYTES_PER_TOKEN

TRANSCRIPTIONS = "/v1/audio/transcriptions"
AUDIO = b"RIFF" + bytes(range(256)) * 400


@pytest.fixture
async def endpoint():
    async with answering_endpoint() as endpoint:
        endpoint.answer = b'{"text": "one two", "usage": {"type": "duration", "seconds": 3}}'
        yield endpoint


@pytest.fixture
async def gateway(endpoint):
    async with running_gateway(pool_over(endpoint.url)) as gateway:
        yield gateway


def parts_of(endpoint):
    """The form that the engine got, read by another parser than the gateway's."""
    _, body = endpoint.asked[-1]
    head = f"Content-Type: {endpoint.header('content-type')}\r\n\r\n".encode()
    parts = message_from_bytes(head + body, policy=HTTP).iter_parts()
    return {each.get_param("name", header="content-disposition"): each.get_payload(decode=True) for each in parts}


class TestTheOfficialClient:
    @pytest.mark.filterwarnings("ignore:deprecated:DeprecationWarning")  # the client's own mark on translations
    @pytest.mark.parametrize("api", ["transcriptions", "translations"])
    async def test_has_its_file_understood(self, endpoint, gateway, api):
        async with tenant(gateway) as client:
            create = getattr(client.audio, api).create
            answer = await create(model="sim", file=("speech.wav", AUDIO), prompt="names", temperature=0.5)
        assert answer.text == "one two"
        assert endpoint.path() == f"/v1/audio/{api}"
        assert parts_of(endpoint) == {"model": b"sim", "file": AUDIO, "prompt": b"names", "temperature": b"0.5"}

    async def test_has_its_key_kept_here_and_its_headers_passed_on(self, endpoint, gateway):
        async with tenant(gateway) as client:
            await client.audio.transcriptions.create(
                model="sim", file=("speech.wav", AUDIO), extra_headers={"traceparent": "00-0af7-b7ad-01"}
            )
        head, body = endpoint.asked[0]
        assert key_of("a").encode() not in head + body
        assert endpoint.header("authorization") is None
        assert endpoint.header("traceparent") == "00-0af7-b7ad-01"
        assert endpoint.header("content-length") == str(len(body))

    async def test_pays_for_its_bytes(self, endpoint, gateway):
        charges = []
        async with tenant(gateway) as client:
            for times in (1, 11):
                before = gateway.dispatcher.counts.charged
                await client.audio.transcriptions.create(model="sim", file=("speech.wav", AUDIO * times))
                charges.append(gateway.dispatcher.counts.charged - before)
        assert charges[1] - charges[0] == pytest.approx(10 * len(AUDIO) / FILE_BYTES_PER_TOKEN, abs=1)

    @pytest.mark.parametrize(
        ("events", "used"), [(TRANSCRIPT, 14 + 2 * 45), (VLLM_CHAT + VLLM_USAGE, 30 + 2 * 3)], ids=["OpenAI", "vLLM"]
    )
    async def test_gets_a_stream_from_which_is_learned(self, endpoint, gateway, events, used):
        endpoint.answer, endpoint.headers = events, b"content-type: text/event-stream\r\n"
        async with tenant(gateway) as client:
            stream = await client.audio.transcriptions.create(model="sim", file=("speech.wav", AUDIO), stream=True)
            assert [event async for event in stream]
        assert gateway.dispatcher.counts.used == used

    async def test_is_told_what_is_wrong_with_its_form(self, endpoint, gateway):
        async with tenant(gateway) as client:
            with pytest.raises(openai.BadRequestError) as told:
                await client.post("/audio/transcriptions", cast_to=object, body={"model": "sim"})
            assert "multipart/form-data" in told.value.message
            with pytest.raises(openai.BadRequestError) as told:
                await client.audio.transcriptions.create(
                    model="sim", file=("speech.wav", AUDIO), extra_body={"priority": "-5"}
                )
            assert told.value.param == "priority"
        assert endpoint.asked == []


class TestTheBytes:
    @pytest.mark.parametrize(
        "body",
        [
            recording(),
            recording(AUDIO, language="en", response_format="verbose_json"),
            b"\r\n" + recording() + b"\r\nan epilogue",
            form_of(part("file", AUDIO, "caf\u00e9.wav"), part("model", "sim")),
        ],
    )
    async def test_are_those_that_were_sent(self, endpoint, gateway, body):
        async with wire(gateway) as line:
            await line.send(request_bytes(body, b"Content-Type: " + CONTENT_TYPE, target=TRANSCRIPTIONS))
            assert (await line.answer())[0] == 200
        assert endpoint.asked[0][1] == body
        assert endpoint.header("content-type") == CONTENT_TYPE.decode()

    async def test_even_in_chunks_and_then_they_have_a_length(self, endpoint, gateway):
        body = recording(AUDIO)
        pieces = [body[at : at + 7000] for at in range(0, len(body), 7000)]
        chunks = b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in (*pieces, b""))
        headers = [b"Content-Type: " + CONTENT_TYPE]
        async with wire(gateway) as line:
            await line.send(
                request_bytes(chunks, *headers, target=TRANSCRIPTIONS, framing=b"Transfer-Encoding: chunked")
            )
            assert (await line.answer())[0] == 200
        assert endpoint.asked[0][1] == body
        assert endpoint.header("content-length") == str(len(body))
        assert endpoint.header("transfer-encoding") is None

    async def test_even_if_they_are_many(self):
        body = recording(b"\r\n--" + BOUNDARY[:-1] + bytes(20 << 20))
        headers = [b"Content-Type: " + CONTENT_TYPE]
        async with (
            ScriptedEndpoint.listening() as endpoint,
            running_gateway(pool_over(endpoint)) as gateway,
            wire(gateway) as line,
        ):
            sending = asyncio.create_task(line.send(request_bytes(body, *headers, target=TRANSCRIPTIONS)))
            peer = await endpoint.accept()
            assert (await peer.request())[1] == body
            await sending
            await peer.answer()
            assert (await line.answer())[0] == 200
