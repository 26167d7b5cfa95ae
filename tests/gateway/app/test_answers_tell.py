"""What every answer tells of itself: the id of its request, and where the time went."""

import asyncio
import json
import re

import httpx
import pytest
from support.config import key_of
from support.engine import running_engine
from support.gateway import running_gateway
from support.scripted_endpoint import ScriptedEndpoint, refusing_port, until
from support.tenant import CHAT, QUESTION, pool_over, request_bytes, wire

from fairpool_gateway.app import proxy
from fairpool_gateway.app.shutdown import Phase

KEY = {"authorization": f"Bearer {key_of('a')}", "content-type": "application/json"}
STREAM = request_bytes(json.dumps({**QUESTION, "stream": True}).encode())
OURS = re.compile(r"req-[0-9a-f]{8}-\d+")


@pytest.fixture
async def gateway():
    async with running_engine() as engine, running_gateway(pool_over(engine.url)) as running:
        yield running


async def ask(gateway, method="POST", path=CHAT, body=QUESTION, **headers):
    async with httpx.AsyncClient(timeout=10) as client:
        content = json.dumps(body).encode() if method == "POST" else None
        return await client.request(method, gateway.url + path, content=content, headers={**KEY, **headers})


def timing(answer):
    """Names and milliseconds."""
    parts = (part.split(";dur=") for part in answer.headers["server-timing"].split(", "))
    return {name: int(value) for name, value in parts}


ANSWERS = {
    "an engine's": ({}, 200),
    "a stream": ({"body": {**QUESTION, "stream": True}}, 200),
    "an engine's error": ({"x-engine-fault": "500"}, 500),
    "no credential": ({"authorization": ""}, 401),
    "no such model": ({"body": {**QUESTION, "model": "none"}}, 404),
    "no JSON": ({"body": []}, 400),
    "an encoding": ({"content-encoding": "gzip"}, 415),
    "no such path": ({"path": "/v1/none"}, 404),
    "another method": ({"method": "GET"}, 404),
    "models": ({"method": "GET", "path": "/v1/models"}, 200),
    "models without a credential": ({"method": "GET", "path": "/v1/models", "authorization": ""}, 401),
}


class TestTheId:
    @pytest.mark.parametrize("how", ANSWERS)
    async def test_is_the_tenants_own_or_made(self, how, gateway):
        asked, status = ANSWERS[how]
        made = await ask(gateway, **asked)
        assert made.status_code == status
        assert OURS.fullmatch(made.headers["x-request-id"])
        own = await ask(gateway, **{**asked, "x-request-id": "my-own/id=1"})
        assert own.headers.get_list("x-request-id") == ["my-own/id=1"]
        assert (await ask(gateway, **asked)).headers["x-request-id"] != made.headers["x-request-id"]

    @pytest.mark.parametrize("bad", [b"", b"two words", b"x" * 129, b"caf\xe9"])
    async def test_is_made_where_the_tenants_could_not_be_shown(self, bad, gateway):
        answer = await ask(gateway, **{"x-request-id": bad})
        assert OURS.fullmatch(answer.headers["x-request-id"])

    async def test_reaches_the_engine_once(self):
        async with ScriptedEndpoint.listening() as endpoint, running_gateway(pool_over(endpoint)) as gateway:
            peer = None
            for own in (b"mine", None):
                async with wire(gateway) as line:
                    await line.send(request_bytes(None, *([] if own is None else [b"X-Request-Id: " + own])))
                    peer = peer or await endpoint.accept()
                    head, _ = await peer.request()
                    await peer.answer(headers=b"X-Request-Id: the-engines\r\n")
                    _, headers, _ = await line.answer()
                    ids = re.findall(rb"^x-request-id: (\S+)\r$", head, re.MULTILINE | re.IGNORECASE)
                    assert ids == [dict(headers)[b"x-request-id"]]
                    assert own in (None, ids[0])

    async def test_is_on_answers_while_it_shuts_down(self, gateway):
        gateway.gateway.shutdown.phase = Phase.DRAINING
        answer = await ask(gateway)
        assert (answer.status_code, answer.headers["x-fairpool-reason"]) == (503, "draining")
        assert OURS.fullmatch(answer.headers["x-request-id"])


class TestAFaultOfOurs:
    """None is known; should one come, it is told and counted as everything else is."""

    async def test_is_a_500_in_the_usual_form_and_nothing_is_left_behind(self, gateway, monkeypatch, caplog):
        monkeypatch.setattr(proxy, "read_shape", lambda *_, **__: 1 / 0)
        answer = await ask(gateway, **{"x-request-id": "mine"})
        assert (answer.status_code, answer.headers["x-fairpool-reason"]) == (500, "internal_error")
        assert answer.json()["error"]["code"] == "internal_error"
        assert answer.headers["x-request-id"] == "mine"
        assert gateway.outcomes == {"internal_error": 1}
        (record,) = (record for record in caplog.records if record.levelname == "ERROR")
        assert record.getMessage() == "a fault of the gateway ended request mine"
        assert gateway.in_flight == gateway.dispatcher.admission.waiting == 0

    async def test_in_the_middle_of_an_answer_breaks_it_off(self, monkeypatch):
        monkeypatch.setattr(proxy.WholeEvents, "take", lambda *_: 1 / 0)
        async with ScriptedEndpoint.listening() as endpoint, running_gateway(pool_over(endpoint)) as gateway:
            async with wire(gateway) as line:
                await line.send(STREAM)
                peer = await endpoint.accept()
                await peer.request()
                of_theirs = b"Content-Type: text/event-stream\r\nTransfer-Encoding: chunked"
                await peer.send(b"HTTP/1.1 200 OK\r\n%b\r\n\r\n9\r\ndata: 1\n\n\r\n" % of_theirs)
                assert (await line.head())[0] == 200
                assert await line.rest() == b""
                await peer.gone()
            assert gateway.outcomes == {"internal_error": 1}
            assert gateway.in_flight == 0

    async def test_beside_the_hot_path_is_told_in_the_same_way(self, gateway, monkeypatch, caplog):
        monkeypatch.setattr(gateway.gateway, "identify", lambda _: 1 / 0)
        answer = await ask(gateway, "GET", "/v1/models", **{"x-request-id": "mine"})
        assert (answer.status_code, answer.headers["x-request-id"]) == (500, "mine")
        assert answer.headers["x-fairpool-reason"] == "internal_error"
        assert "ZeroDivisionError" in caplog.text
        caplog.clear()


class TestTheTiming:
    async def test_of_an_answer_is_its_wait_and_the_engines_first_byte(self):
        async with ScriptedEndpoint.listening() as endpoint:
            config = pool_over(endpoint, slots={"perEndpoint": 1})
            async with running_gateway(config) as gateway:
                first = asyncio.create_task(ask(gateway))
                peer = await endpoint.accept()
                await peer.request()
                second = asyncio.create_task(ask(gateway))
                await until(lambda: gateway.dispatcher.admission.waiting == 1)
                await asyncio.sleep(0.1)
                await peer.answer()
                assert timing(await first)["queue"] == 0
                assert timing(await first)["engine"] >= 95
                await peer.request()
                await asyncio.sleep(0.05)
                await peer.answer()
                told = timing(await second)
                assert told.keys() == {"queue", "engine"}
                assert told["queue"] >= 95
                assert told["engine"] >= 45

    async def test_of_a_stream_stands_before_its_end(self):
        async with (
            ScriptedEndpoint.listening() as endpoint,
            running_gateway(pool_over(endpoint)) as gateway,
            wire(gateway) as line,
        ):
            await line.send(STREAM)
            peer = await endpoint.accept()
            await peer.request()
            of_theirs = b"Server-Timing: theirs;dur=1\r\nTransfer-Encoding: chunked"
            await peer.send(b"HTTP/1.1 200 OK\r\n%b\r\n\r\n1\r\na\r\n" % of_theirs)
            _, headers = await line.head()
            theirs, ours = (value for name, value in headers if name == b"server-timing")
            assert theirs == b"theirs;dur=1"
            assert re.fullmatch(rb"queue;dur=\d+, engine;dur=\d+", ours)

    async def test_of_a_refusal_is_its_wait_if_it_had_one_and_the_tries(self):
        async with running_gateway(pool_over(queue={"timeout": "100ms"})) as gateway:
            assert timing(await ask(gateway))["queue"] >= 95
            assert "server-timing" not in (await ask(gateway, authorization="")).headers
        async with running_gateway(pool_over(f"http://{refusing_port()}")) as gateway:
            answer = await ask(gateway)
            assert (answer.status_code, timing(answer).keys()) == (502, {"queue", "engine"})
