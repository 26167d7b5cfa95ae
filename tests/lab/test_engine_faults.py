"""Each fault does what it says to the bytes on the wire, on both event loops, and to nobody else's request."""

import asyncio
import gzip
import json
import zlib
from collections.abc import AsyncIterator
from dataclasses import dataclass
from random import Random
from urllib.parse import urlsplit

import httpx
import pytest
from support.engine import FAST, engine_process, running_engine

from fairpool_lab.engine.faults import Fault, FaultBoard, Kind
from fairpool_lab.engine.wire import Splitter
from fairpool_lab.errors import FaultUnknown


@dataclass(frozen=True)
class Heard:
    """Everything that came on a connection, and how it ended."""

    data: bytes
    end: str

    @property
    def events(self) -> int:
        return self.data.count(b"data: {")


@dataclass(frozen=True)
class Target:
    """An engine, wherever it runs."""

    url: str

    @property
    def address(self) -> tuple[str, int]:
        parts = urlsplit(self.url)
        return parts.hostname or "", parts.port or 0

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection(*self.address)

    async def hear(self, fault: str | None = None, *, stream: bool = True, tokens: int = 6) -> Heard:
        """Ask for so many tokens and listen until the connection ends (it is asked to, after the answer)."""
        reader, writer = await self.connect()
        writer.write(request(fault, stream=stream, tokens=tokens))
        data = b""
        end = "closed"
        try:
            while piece := await reader.read(65536):
                data += piece
        except ConnectionResetError:
            end = "reset"
        writer.close()
        return Heard(data, end)

    async def order(self, fault: str | None, **fields: object) -> None:
        async with httpx.AsyncClient(base_url=self.url) as client:
            answer = await client.post("/debug/faults", json={"fault": fault, **fields})
            assert answer.status_code == 200, answer.text


def request(fault: str | None, *, stream: bool, tokens: int) -> bytes:
    asked = {"model": "sim", "prompt": "hello", "max_tokens": tokens, "ignore_eos": True, "stream": stream}
    body = json.dumps(asked).encode()
    head = (
        "POST /v1/completions HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-type: application/json\r\n"
        f"content-length: {len(body)}\r\n"
    )
    if fault is not None:
        head += f"x-engine-fault: {fault}\r\n"
    return head.encode() + b"\r\n" + body


@pytest.fixture(params=["in this process", "in its own"])
async def target(request) -> AsyncIterator[Target]:
    if request.param == "in this process":
        async with running_engine() as engine:
            yield Target(engine.url)
    else:
        async with engine_process("--step-base", "0.0005") as process:
            yield Target(process.url)


def dechunked(body: bytes) -> bytes:
    """A chunked body's content; it must be complete."""
    content = b""
    while True:
        size, _, body = body.partition(b"\r\n")
        length = int(size, 16)
        if not length:
            assert body == b"\r\n"
            return content
        content += body[:length]
        body = body[length + 2 :]


class TestOnTheWire:
    """One engine, many faults one after the other, for a process takes a while to start."""

    async def test_breaks_are_what_they_are_called(self, target):
        whole = await target.hear()
        assert (whole.events, whole.end) == (6, "closed")
        assert whole.data.endswith(b"data: [DONE]\n\n\r\n0\r\n\r\n")

        died = await target.hear("die:3")
        assert (died.events, died.end) == (3, "reset")

        truncated = await target.hear("truncate:2")
        assert (truncated.events, truncated.end) == (2, "closed")
        assert not truncated.data.endswith(b"0\r\n\r\n")

        for fault, end in (("die", "reset"), ("truncate", "closed")):
            unary = await target.hear(fault, stream=False)
            head, _, body = unary.data.partition(b"\r\n\r\n")
            assert unary.end == end
            assert 0 < len(body) < int(head.partition(b"content-length: ")[2].split()[0])

        refused = await target.hear("refuse")
        assert (refused.data, refused.end) == (b"", "reset")

    async def test_what_is_split_adds_up(self, target):
        whole, split = await target.hear(), await target.hear("split:7")
        ours, theirs = (dechunked(heard.data.partition(b"\r\n\r\n")[2]) for heard in (split, whole))
        assert texts(ours) == texts(theirs)
        assert ours.endswith(b"data: [DONE]\n\n")

    async def test_a_compressed_stream_is_still_a_stream(self, target):
        heard = await target.hear("gzip", tokens=200)
        head, _, body = heard.data.partition(b"\r\n\r\n")
        assert b"content-encoding: gzip" in head
        assert len(texts(gzip.decompress(dechunked(body)))) == 200
        size, _, rest = body.partition(b"\r\n")
        first_chunk = zlib.decompressobj(wbits=31).decompress(rest[: int(size, 16)])
        assert 0 < len(texts(first_chunk)) < 200

    async def test_a_refusing_engine_keeps_its_port_and_comes_back(self, target):
        reader, writer = await target.connect()
        writer.write(request(None, stream=True, tokens=300))
        await reader.readuntil(b"data: ")
        await target.order("refuse:0.3")
        with pytest.raises(ConnectionRefusedError):
            await target.connect()
        assert (await reader.read()).endswith(b"data: [DONE]\n\n\r\n0\r\n\r\n"), "what ran went on"
        writer.close()
        async with asyncio.timeout(10):
            while True:
                try:
                    heard = await target.hear()
                    break
                except ConnectionRefusedError:
                    await asyncio.sleep(0.02)
        assert heard.events == 6


def texts(body: bytes) -> list[str]:
    lines = [line.removeprefix(b"data: ") for line in body.split(b"\n\n") if line.startswith(b"data: {")]
    return [json.loads(line)["choices"][0]["text"] for line in lines]


class Recorder(asyncio.Transport):
    """A transport that remembers what is done to it."""

    def __init__(self) -> None:
        super().__init__()
        self.written: list[bytes] = []
        self.closed = asyncio.Event()

    def write(self, data) -> None:
        self.written.append(bytes(data))

    def close(self) -> None:
        self.closed.set()

    def is_closing(self) -> bool:
        return self.closed.is_set()


async def segments(seed: int) -> list[bytes]:
    transport = Recorder()
    splitter = Splitter(transport, Random(seed), 7)
    splitter.write(b"x" * 100)
    splitter.write(b"y" * 100)
    splitter.close()
    await transport.closed.wait()
    return transport.written


async def test_segments_are_cut_where_the_seed_says_and_closing_waits_for_the_last():
    cut = await segments(1)
    assert b"".join(cut) == b"x" * 100 + b"y" * 100
    assert {len(segment) for segment in cut} == set(range(1, 8))
    assert await segments(1) == cut != await segments(2)


class TestHanging:
    async def test_before_the_headers_nothing_comes_until_the_client_leaves(self):
        async with running_engine() as engine:
            reader, writer = await asyncio.open_connection("127.0.0.1", engine.port)
            writer.write(request("hang-before", stream=True, tokens=6))
            heard = asyncio.ensure_future(reader.read(1))
            answer = await Target(engine.url).hear()
            assert answer.events == 6
            assert not heard.done()
            await engine.stop()
            with pytest.raises(ConnectionResetError):
                await heard
            writer.close()

    async def test_after_the_headers_nothing_comes_until_the_engine_ends(self):
        async with running_engine() as engine:
            reader, writer = await asyncio.open_connection("127.0.0.1", engine.port)
            writer.write(request("hang-after", stream=True, tokens=6))
            assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200 OK\r\n")
            heard = asyncio.ensure_future(reader.read(1))
            await Target(engine.url).hear()
            assert not heard.done()
            await engine.stop()
            with pytest.raises(ConnectionResetError):
                await heard
            writer.close()

    @pytest.mark.parametrize("kind", ["hang-before", "hang-after"])
    @pytest.mark.parametrize("stream", [True, False])
    async def test_for_so_long_then_all_is_well(self, kind, stream):
        async with running_engine() as engine:
            heard = await Target(engine.url).hear(f"{kind}:0.01", stream=stream)
            assert b'"finish_reason":"length"' in heard.data


class TestSlow:
    @pytest.mark.parametrize("stream", [True, False])
    async def test_one_request_is_slower_and_the_engine_is_not(self, stream):
        async with running_engine() as engine:
            loop = asyncio.get_running_loop()
            since = loop.time()
            listening = asyncio.create_task(Target(engine.url).hear("slow:5", stream=stream, tokens=40))
            await engine.until(lambda e: e.runner.finished["length"] == 1)
            assert b'"finish_reason":"length"' in (await listening).data
            assert loop.time() - since > 5 * 40 * FAST.step_base * 0.8

    async def test_the_whole_engine_is_slower_until_that_is_cleared(self):
        async with running_engine() as engine:
            await engine.set_fault(Fault.parse("slow:1000000"))
            asking = asyncio.create_task(Target(engine.url).hear())
            await engine.until(lambda e: e.running == 1)
            await Target(engine.url).order(None)
            assert (await asking).events == 6


class TestErrors:
    @pytest.mark.parametrize(
        ("fault", "status", "retry_after"),
        [("429", 429, "1"), ("429:7", 429, "7"), ("500", 500, None), ("503", 503, None)],
    )
    async def test_a_status_is_answered_in_the_shape_of_vllm(self, fault, status, retry_after):
        async with running_engine() as engine, httpx.AsyncClient(base_url=engine.url) as client:
            answer = await client.post("/v1/completions", json={"prompt": "x"}, headers={"x-engine-fault": fault})
            assert answer.status_code == answer.json()["error"]["code"] == status
            assert answer.headers.get("retry-after") == retry_after
            assert engine.tokens() == {}

    async def test_an_unknown_fault_is_told_so(self):
        async with running_engine() as engine, httpx.AsyncClient(base_url=engine.url) as client:
            answer = await client.post("/v1/completions", json={"prompt": "x"}, headers={"x-engine-fault": "melt"})
            assert answer.status_code == 400
            assert "no fault is called 'melt'" in answer.json()["error"]["message"]
            for body in (b'{"fault": "melt"}', b"{}", b"x"):
                assert (await client.post("/debug/faults", content=body)).status_code == 400


class TestForAll:
    async def test_so_many_requests_go_wrong_and_no_more(self):
        async with running_engine() as engine, httpx.AsyncClient(base_url=engine.url) as client:
            await Target(engine.url).order("503", times=2)
            statuses = [(await client.post("/v1/completions", json={"prompt": "x"})).status_code for _ in range(3)]
            assert statuses == [503, 503, 200]

    async def test_probes_are_spared_unless_it_is_everywhere(self):
        async with running_engine(fault="500") as engine, httpx.AsyncClient(base_url=engine.url) as client:
            assert (await client.post("/v1/completions", json={"prompt": "x"})).status_code == 500
            assert (await client.get("/health")).status_code == 200
            await Target(engine.url).order("500", everywhere=True)
            for path in ("/health", "/v1/models", "/metrics"):
                assert (await client.get(path)).status_code == 500
            await Target(engine.url).order(None)
            assert (await client.get("/health")).status_code == 200

    async def test_a_requests_own_fault_comes_first_and_uses_up_none(self):
        async with running_engine() as engine:
            await engine.set_fault(Fault.parse("500"), times=1)
            assert (await Target(engine.url).hear("die:1")).end == "reset"
            assert (await Target(engine.url).hear()).data.startswith(b"HTTP/1.1 500")
            assert (await Target(engine.url).hear()).events == 6

    async def test_a_crash_resets_every_connection(self):
        async with running_engine() as engine:
            listening = asyncio.create_task(Target(engine.url).hear(tokens=10_000))
            await engine.until(lambda e: e.running == 1)
            engine.drop_connections()
            assert (await listening).end == "reset"
            await engine.until(lambda e: e.running == 0)


class TestNames:
    @pytest.mark.parametrize("kind", [kind for kind in Kind if kind is not Kind.SLOW])
    def test_every_kind_can_be_named_alone(self, kind):
        assert Fault.parse(str(kind)).kind is kind

    @pytest.mark.parametrize("text", ["die:3", "slow:2.5", "429:7", "hang-before:0.5", "split:4", "503"])
    def test_a_fault_reads_as_it_is_written(self, text):
        assert str(Fault.parse(text)) == text

    @pytest.mark.parametrize(
        "text", ["", "melt", "slow", "slow:0.5", "die:x", "die:-1", "gzip:1", "split:0", "429:nan", "hang-after:inf"]
    )
    def test_what_makes_no_sense_is_refused(self, text):
        with pytest.raises(FaultUnknown):
            Fault.parse(text)

    def test_a_board_that_is_set_for_no_times_does_nothing(self):
        board = FaultBoard()
        board.set(Fault.parse("500"), times=0)
        assert board.take() is None
