"""From SIGTERM to the end of the process: nothing that was sent is lost, and nobody is left without an answer."""

import asyncio
import json
import signal
from contextlib import AsyncExitStack, asynccontextmanager, suppress

import httpx
import openai
import pytest
from support.answering import answering_endpoint
from support.config import key_of
from support.engine import running_engine
from support.gateway_process import gateway_process
from support.scripted_endpoint import PATIENCE, ScriptedEndpoint, until
from support.tenant import QUESTION, Wire, pool_over, request_bytes

from fairpool_gateway.config import dump

JSON = b"Content-Type: application/json"
EVENTS = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
EVENT = b'data: {"choices": [{"index": 0, "delta": {"content": "word"}}]}\n\n'


@pytest.fixture
def config(tmp_path):
    """Writes a pool over these endpoints into a file, over what is there; returns its path."""

    def write(*endpoints, **fields):
        path = tmp_path / "pool.json"
        path.with_suffix(".new").write_text(dump(pool_over(*endpoints, **fields)))
        path.with_suffix(".new").replace(path)
        return path

    return write


class Service:
    """As a Service of Kubernetes: each new connection goes to where `target` leads; those that stand stay."""

    def __init__(self, target):
        self.target = target
        self._tasks = set()

    @asynccontextmanager
    async def listening(self):
        """Yields the port."""
        server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        try:
            yield server.sockets[0].getsockname()[1]
        finally:
            server.close()
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _accept(self, reader, writer):
        self._tasks.add(asyncio.current_task())
        host, _, port = self.target.removeprefix("http://").partition(":")
        there, back = await asyncio.open_connection(host, int(port))
        async with asyncio.TaskGroup() as both:
            both.create_task(self._copy(reader, back))
            both.create_task(self._copy(there, writer))

    async def _copy(self, reader, writer):
        try:
            while data := await reader.read(65536):
                writer.write(data)
        finally:
            writer.close()


@asynccontextmanager
async def connection(port):
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        yield Wire(reader, writer)
    finally:
        writer.transport.abort()


class Engine:
    """An endpoint that answers probes, and leaves the rest to the test: those that `asked`."""

    def __init__(self, endpoint):
        self.asked = asyncio.Queue()
        self._endpoint = endpoint
        self._serving = []

    @classmethod
    @asynccontextmanager
    async def listening(cls):
        async with ScriptedEndpoint.listening() as endpoint:
            engine = cls(endpoint)
            accepting = asyncio.create_task(engine._accept())
            yield engine, endpoint
            accepting.cancel()
            await asyncio.wait([accepting])

    async def all_gone(self):
        """The gateway has closed every connection."""
        async with asyncio.timeout(PATIENCE):
            await asyncio.gather(*self._serving)

    async def _accept(self):
        while True:
            peer = await self._endpoint.accept()
            self._serving.append(asyncio.create_task(self._serve(peer)))

    async def _serve(self, peer):
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                head, _ = await peer.request()
                if head.startswith(b"GET "):
                    await peer.answer()
                else:
                    self.asked.put_nowait(peer)


async def seen(gateway, path):
    async with httpx.AsyncClient(base_url=gateway.admin_url) as client:
        return await client.get(path)


async def shows(gateway, metric):
    """Wait until the metrics hold this line."""
    async with asyncio.timeout(PATIENCE):
        while metric not in (await seen(gateway, "/metrics")).text:  # noqa: ASYNC110 - it is another process
            await asyncio.sleep(0.02)


def port_of(gateway):
    return int(gateway.url.rpartition(":")[2])


@asynccontextmanager
async def official(url, name="a"):
    async with openai.AsyncOpenAI(
        base_url=f"{url}/v1", api_key=key_of(name), max_retries=0, timeout=PATIENCE
    ) as client:
        yield client


class TestARestart:
    async def test_with_a_second_instance_loses_no_request_of_any_client(self, config):
        """New connections go to the old instance for a second more, as they do while a Service learns of it."""
        answered = []

        async def ask_for_ever(url, **extra):
            async with official(url) as client:
                while True:
                    answer = await client.chat.completions.create(**QUESTION, **extra)
                    if extra:
                        assert [event async for event in answer][-1].choices[0].finish_reason
                    answered.append("official")

        async def send_for_ever(port):
            while True:
                async with connection(port) as line:
                    closes = False
                    while not closes:
                        await line.send(request_bytes(None, JSON))
                        status, headers, _ = await line.answer()
                        assert status == 200
                        answered.append("raw")
                        closes = (b"connection", b"close") in headers

        async with running_engine() as engine, AsyncExitStack() as stack:
            path = config(engine.url)
            old = await stack.enter_async_context(gateway_process(path, "--in-pod"))
            new = await stack.enter_async_context(gateway_process(path))
            service = Service(old.url)
            port = await stack.enter_async_context(service.listening())
            url = f"http://127.0.0.1:{port}"
            load = [asyncio.create_task(ask_for_ever(url)) for _ in range(3)]
            load += [asyncio.create_task(ask_for_ever(url, stream=True)) for _ in range(2)]
            load += [asyncio.create_task(send_for_ever(port)) for _ in range(3)]
            await until(lambda: min(map(answered.count, ("official", "raw"))) > 20)
            old.signal(signal.SIGTERM)
            asyncio.get_running_loop().call_later(1.0, setattr, service, "target", new.url)
            assert await old.ended() == 0
            before = len(answered)
            await until(lambda: len(answered) > before + 50 or any(task.done() for task in load))
            failed = [task.exception() for task in load if task.done()]
            for task in load:
                task.cancel()
            await asyncio.gather(*load, return_exceptions=True)
            assert not failed
            assert not [line for line in old.said if " ERROR " in line or "Traceback" in line]


class TestWhileItDrains:
    async def test_what_runs_and_what_waits_is_finished_whatever_is_signalled(self, config):
        async with answering_endpoint() as engine, AsyncExitStack() as stack:
            engine.may_answer.clear()
            path = config(engine.url, slots={"perEndpoint": 1})
            gateway = await stack.enter_async_context(gateway_process(path, "--no-in-pod"))
            client = await stack.enter_async_context(official(gateway.url))
            asking = [asyncio.create_task(client.chat.completions.create(**QUESTION)) for _ in range(2)]
            await shows(gateway, 'fairpool_waiting_requests{tenant="a"} 1.0')
            for number in (signal.SIGTERM, signal.SIGTERM, signal.SIGINT):
                gateway.signal(number)
                await gateway.says("draining")
            engine.may_answer.set()
            await asyncio.gather(*asking)
            assert await gateway.ended() == 0

    async def test_who_comes_is_told_on_old_connections_and_on_new_ones(self, config):
        async with Engine.listening() as (engine, endpoint), AsyncExitStack() as stack:
            gateway = await stack.enter_async_context(gateway_process(config(endpoint), "--no-in-pod"))
            kept, runs, new = [await stack.enter_async_context(connection(port_of(gateway))) for _ in range(3)]
            await kept.send(request_bytes())
            await (await engine.asked.get()).answer(b"{}")
            assert (await kept.answer())[0] == 200
            await runs.send(request_bytes())
            peer = await engine.asked.get()
            gateway.signal(signal.SIGTERM)
            await gateway.says("draining")
            assert (await seen(gateway, "/readyz")).status_code == 503
            for line in (kept, new):
                await line.send(request_bytes())
                status, headers, body = await line.answer()
                told = dict(headers)
                assert (status, told[b"x-fairpool-reason"], told[b"retry-after"]) == (503, b"draining", b"1")
                assert (told[b"connection"], json.loads(body)["error"]["code"]) == (b"close", "draining")
                assert await line.rest() == b""
            await peer.answer(b"finished")
            status, headers, body = await runs.answer()
            assert (status, dict(headers)[b"connection"], body) == (200, b"close", b"finished")
            assert await gateway.ended() == 0

    async def test_edits_still_count(self, config):
        async with (
            running_engine() as engine,
            gateway_process(config(), "--no-in-pod") as gateway,
            official(gateway.url) as client,
        ):
            waits = asyncio.create_task(client.chat.completions.create(**QUESTION))
            await shows(gateway, 'fairpool_waiting_requests{tenant="a"} 1.0')
            gateway.signal(signal.SIGTERM)
            await gateway.says("draining")
            config(engine.url)
            assert (await waits).usage.completion_tokens == 3
            assert await gateway.ended() == 0


class TestWhenThereIsNoMoreTime:
    async def test_everybody_is_told(self, config):
        """Who streams, who has half an answer or none yet, who waits, for a first try or another, who still sends."""
        async with Engine.listening() as (one, at), Engine.listening() as (two, at_two), AsyncExitStack() as stack:
            path = config(at, at_two, slots={"perEndpoint": 2})
            gateway = await stack.enter_async_context(gateway_process(path, "--no-in-pod", "--drain-seconds", "1"))
            lines = [await stack.enter_async_context(connection(port_of(gateway))) for _ in range(7)]
            streams, half, silent, tries, silent_too, waits, sends = lines
            peers = []
            for line, engine in ((streams, one), (half, two), (silent, one), (tries, two)):
                await line.send(request_bytes())
                peers.append(await engine.asked.get())
            await peers[0].send(EVENTS + b"%x\r\n%b\r\n" % (len(EVENT), EVENT))
            await streams.until(EVENT)
            await peers[1].send(b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\nhalf")
            await half.until(b"half")
            await peers[3].send(b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 4\r\n\r\nbusy")
            await shows(gateway, "fairpool_retrying_requests 1.0")
            await silent_too.send(request_bytes())
            await two.asked.get()
            await waits.send(request_bytes())
            await shows(gateway, 'fairpool_waiting_requests{tenant="a"} 1.0')
            await sends.send(request_bytes(b"{", framing=b"Content-Length: 100"))
            gateway.signal(signal.SIGTERM)
            for line in (silent, silent_too, tries, waits, sends):
                status, headers, body = await line.answer()
                told = dict(headers)
                assert (status, told[b"x-fairpool-reason"], told[b"retry-after"]) == (503, b"draining", b"1")
                assert json.loads(body)["error"]["code"] == "draining"
            told = await streams.rest()
            assert b"The stream broke: this gateway shut down before its end" in told
            assert b"[DONE]" not in told
            assert await half.rest() == b""
            await asyncio.gather(one.all_gone(), two.all_gone())
            assert await gateway.ended() == 0
            await gateway.says("ending 7 requests that take longer than there is time to drain")
            assert not [line for line in gateway.said if " ERROR " in line or "Traceback" in line]
