"""httpx over the same client: against a real uvicorn, and with every failure under httpx's own name."""

import asyncio
import contextlib
import json
import socket

import httpx
import pytest
import uvicorn
from fastapi import FastAPI, Request
from fastapi.responses import StreamingResponse
from support.scripted_endpoint import deaf_port, refusing_port, until

from fairpool_gateway.upstream import Client, Transport


def make_app():
    """An engine of a kind: echoes, streams, and notices who leaves."""
    app = FastAPI()
    app.state.left = asyncio.Event()

    @app.post("/echo")
    async def echo(request: Request):
        body = await request.body()
        return {"headers": [[name.decode(), value.decode()] for name, value in request.headers.raw], "size": len(body)}

    @app.get("/stream")
    async def stream():
        async def events():
            for number in range(100):
                yield f"data: {number}\n\n".encode()
                await asyncio.sleep(0)

        return StreamingResponse(events(), media_type="text/event-stream")

    @app.get("/endless")
    async def endless():
        async def events():
            try:
                while True:
                    yield b"data: on and on\n\n"
                    await asyncio.sleep(0.001)
            finally:
                app.state.left.set()

        return StreamingResponse(events(), media_type="text/event-stream")

    return app


@pytest.fixture
async def engine():
    """A real uvicorn in this loop, on a port that the kernel chose."""
    app = make_app()
    config = uvicorn.Config(app, ws="none", lifespan="off", log_config=None, access_log=False)
    server = uvicorn.Server(config)
    server.capture_signals = contextlib.nullcontext
    with socket.create_server(("127.0.0.1", 0)) as listener:
        app.state.url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        serving = asyncio.create_task(server.serve(sockets=[listener]))
        await until(lambda: server.started)
        yield app
        server.should_exit = True
        await serving


@pytest.fixture
async def http(client, tls):
    async with httpx.AsyncClient(transport=Transport(client, tls), timeout=10) as http:
        yield http


class TestAgainstUvicorn:
    async def test_many_exchanges_share_few_connections(self, engine, http, client):
        async def one(size):
            response = await http.post(f"{engine.state.url}/echo", content=bytes(size))
            assert response.status_code == 200
            assert response.json()["size"] == size

        async def several():
            for size in (0, 1, 70_000):
                await one(size)

        await asyncio.gather(*[several() for _ in range(5)])
        assert len(client._connections) == 5

    async def test_headers_arrive_as_httpx_sent_them(self, engine, http):
        headers = [("x-b", "1"), ("x-a", "2"), ("x-b", "3")]
        response = await http.post(f"{engine.state.url}/echo", headers=headers, json={"a": 1})
        seen = response.json()["headers"]
        assert [header for header in seen if header[0] in {"x-a", "x-b"}] == [list(header) for header in headers]
        assert ["content-type", "application/json"] in seen

    async def test_upload_of_unknown_length_goes_in_chunks(self, engine, http):
        async def parts():
            for size in (1, 0, 100_000):
                yield bytes(size)

        response = await http.post(f"{engine.state.url}/echo", content=parts())
        assert response.json()["size"] == 100_001

    async def test_multipart_form_with_a_length(self, engine, http):
        response = await http.post(f"{engine.state.url}/echo", files={"file": b"x" * 1000}, data={"model": "m"})
        seen = dict(response.json()["headers"])
        assert int(seen["content-length"]) == response.json()["size"] > 1000

    async def test_stream_comes_whole_and_in_order(self, engine, http):
        async with http.stream("GET", f"{engine.state.url}/stream") as response:
            assert response.headers["content-type"].startswith("text/event-stream")
            lines = [line async for line in response.aiter_lines() if line]
        assert lines == [f"data: {number}" for number in range(100)]

    async def test_leaving_a_stream_stops_the_engine(self, engine, http):
        async with http.stream("GET", f"{engine.state.url}/endless") as response:
            assert response.status_code == 200
        await asyncio.wait_for(engine.state.left.wait(), 5)

    async def test_head_and_unknown_path(self, engine, http):
        response = await http.head(f"{engine.state.url}/nowhere")
        assert response.status_code == 404
        assert response.content == b""
        assert response.reason_phrase == "Not Found"
        response = await http.get(f"{engine.state.url}/nowhere")
        assert json.loads(response.content) == {"detail": "Not Found"}


class TestThroughHttpx:
    async def test_repeated_headers_stay_apart(self, http, endpoint):
        task = asyncio.create_task(http.get(url(endpoint)))
        peer = await endpoint.accept()
        await peer.request()
        await peer.answer(headers=b"Set-Cookie: a=1\r\nSet-Cookie: b=2\r\n")
        assert (await task).headers.get_list("set-cookie") == ["a=1", "b=2"]

    async def test_closing_httpx_leaves_the_client_to_its_owner(self, client, endpoint, tls):
        async with httpx.AsyncClient(transport=Transport(client, tls)) as http:
            task = asyncio.create_task(http.get(url(endpoint)))
            peer = await endpoint.accept()
            await peer.request()
            await peer.answer()
            await task
        async with httpx.AsyncClient(transport=Transport(client, tls)) as http:
            task = asyncio.create_task(http.get(url(endpoint)))
            await peer.request()
            await peer.answer(b"still there")
            assert (await task).text == "still there"

    async def test_request_on_a_dead_connection_is_sent_once_more(self, http, endpoint):
        first = asyncio.create_task(http.post(url(endpoint), json={"a": 1}))
        peer = await endpoint.accept()
        await peer.request()
        await peer.answer()
        await first
        second = asyncio.create_task(http.post(url(endpoint), json={"a": 2}))
        await peer.request()
        peer.end()
        peer = await endpoint.accept()
        assert (await peer.request())[1] == b'{"a":2}'
        await peer.answer()
        assert (await second).text == "ok"

    async def test_cancelled_request_closes_its_connection(self, http, endpoint):
        task = asyncio.create_task(http.get(url(endpoint)))
        peer = await endpoint.accept()
        await peer.request()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await peer.gone()

    async def test_no_limit_is_taken_as_such(self, client, endpoint, tls):
        async with httpx.AsyncClient(transport=Transport(client, tls), timeout=None) as http:
            task = asyncio.create_task(http.get(url(endpoint)))
            peer = await endpoint.accept()
            await peer.request()
            await peer.answer()
            assert (await task).text == "ok"


class TestFailures:
    async def test_refused(self, http):
        target = refusing_port()
        with pytest.raises(httpx.ConnectError):
            await http.get(f"http://{target}/")

    async def test_no_connection_in_time(self, http):
        with deaf_port() as target, pytest.raises(httpx.ConnectTimeout):
            await http.get(f"http://{target}/", timeout=0.03)

    async def test_no_answer_in_time(self, http, endpoint):
        with pytest.raises(httpx.ReadTimeout):
            await http.get(url(endpoint), timeout=httpx.Timeout(10, read=0.03))

    async def test_no_answer_at_all(self, http, endpoint):
        task = asyncio.create_task(http.get(url(endpoint)))
        peer = await endpoint.accept()
        peer.end()
        with pytest.raises(httpx.ReadError):
            await task

    async def test_answer_that_ends_early(self, http, endpoint):
        task = asyncio.create_task(http.get(url(endpoint)))
        peer = await endpoint.accept()
        await peer.request()
        await peer.send(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello")
        peer.end()
        with pytest.raises(httpx.ReadError) as caught:
            await task
        assert caught.value.request.url == url(endpoint)

    async def test_other_scheme(self, http):
        with pytest.raises(httpx.UnsupportedProtocol):
            await http.get("ftp://127.0.0.1/")

    async def test_https_without_a_say_whom_to_trust(self, client):
        async with httpx.AsyncClient(transport=Transport(client)) as http:
            with pytest.raises(httpx.UnsupportedProtocol):
                await http.get("https://127.0.0.1/")

    def test_transport_needs_no_loop_to_be_made(self):
        assert Transport(Client())


def url(endpoint):
    return f"{'https' if endpoint.target.tls else 'http'}://{endpoint.target}/"
