"""Every test here runs on the loop of production and on the standard library's."""

import asyncio

import pytest
import uvloop
from support.scripted_endpoint import ScriptedEndpoint

from fairpool_gateway.upstream import Client, Timeouts, request_head


def pytest_asyncio_loop_factories(config, item):
    return {"uvloop": uvloop.new_event_loop, "asyncio": asyncio.new_event_loop}


@pytest.fixture
async def endpoint():
    async with ScriptedEndpoint.listening() as endpoint:
        yield endpoint


@pytest.fixture
async def client():
    """A client, and the proof that it leaves neither a connection nor a pool behind."""
    client = Client()
    yield client
    await client.aclose()
    assert not client._connections
    assert not client._pool._idle


@pytest.fixture
def ask(client, endpoint):
    """Start an exchange with the endpoint, as a task."""

    def ask(body=b"", *, method=b"POST", target=None, connect=10.0, first_byte=10.0, idle=10.0):
        framing = [(b"Content-Length", str(len(body)).encode())] if isinstance(body, bytes) else []
        head = request_head(method, b"/v1/echo", [(b"Host", b"endpoint"), *framing])
        timeouts = Timeouts(connect, first_byte, idle)
        return asyncio.create_task(client.send(target or endpoint.target, head, body, timeouts))

    return ask
