"""Every test here runs on the loop of production and on the standard library's, over plain TCP and over TLS."""

import asyncio
import math

import pytest
import uvloop
from support.certificates import NAME, Authority
from support.scripted_endpoint import PATIENCE, ScriptedEndpoint

from fairpool_gateway.upstream import Client, Timeouts, Tls, request_head


def pytest_asyncio_loop_factories(config, item):
    return {"uvloop": uvloop.new_event_loop, "asyncio": asyncio.new_event_loop}


@pytest.fixture(scope="session")
def authority(tmp_path_factory):
    """Vouches for the endpoint."""
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture
def tls(authority):
    """How the endpoint proves itself, over TLS."""
    return Tls(str(authority.file), NAME)


@pytest.fixture(params=["tcp", "tls"])
async def endpoint(request, authority, tls):
    """An endpoint over plain TCP, and one over TLS: there is no difference but in bytes on the wire."""
    secured = (authority.serving(), tls) if request.param == "tls" else ()
    async with ScriptedEndpoint.listening(*secured) as endpoint:
        yield endpoint


@pytest.fixture(autouse=True)
async def nothing_unhandled():
    """No callback fails and no failure is left unread in silence."""
    unhandled = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: unhandled.append(context))
    yield
    assert not unhandled


@pytest.fixture
async def client():
    """A client that gives no connection up on its own, and the proof that it leaves none behind."""
    client = Client(keepalive=math.inf)
    yield client
    await client.aclose()
    assert not client._connections
    assert not client._pool._idle


@pytest.fixture
def ask(client, endpoint):
    """Start an exchange with the endpoint, as a task, without limits but for those that are given."""

    def ask(body=b"", *, method=b"POST", target=None, connect=math.inf, first_byte=math.inf, idle=math.inf):
        framing = [(b"Content-Length", str(len(body)).encode())] if isinstance(body, bytes) else []
        head = request_head(method, b"/v1/echo", [(b"Host", b"endpoint"), *framing])
        timeouts = Timeouts(connect, first_byte, idle)

        async def exchange():
            async with asyncio.timeout(PATIENCE):
                return await client.send(target or endpoint.target, head, body, timeouts)

        return asyncio.create_task(exchange())

    return ask
