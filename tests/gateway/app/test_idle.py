"""A connection waits so long for its next request, and is closed no sooner: not in use, and not before that time."""

import asyncio
import math

import pytest
from support.gateway import start, stop
from support.scripted_endpoint import PATIENCE, until
from support.tenant import request_bytes

from fairpool_gateway.app.server import http_server


class Waiting:
    """An application that answers when it is told to."""

    def __init__(self):
        self.asked = 0
        self.may_answer = asyncio.Event()
        self.may_answer.set()

    async def __call__(self, scope, receive, send):
        self.asked += 1
        await self.may_answer.wait()
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
        await send({"type": "http.response.body", "body": b"{}"})


@pytest.fixture
def application():
    return Waiting()


@pytest.fixture
async def server(application):
    server = http_server(application)
    yield server
    await stop(server)


@pytest.fixture
async def connection(server):
    reader, writer = await asyncio.open_connection("127.0.0.1", await start(server))
    yield reader, writer
    writer.close()


@pytest.fixture
async def tenant(connection, server):
    """The server's side of it, once it has been used."""
    await ask(connection)
    (tenant,) = server.server_state.connections
    return tenant


async def ask(connection):
    reader, writer = connection
    writer.write(request_bytes())
    async with asyncio.timeout(PATIENCE):
        await reader.readuntil(b"{}")


async def test_it_is_closed_once_it_has_been_idle_for_so_long(application):
    server = http_server(application)
    server.config.timeout_keep_alive = 0.1
    reader, writer = await asyncio.open_connection("127.0.0.1", await start(server))
    began = asyncio.get_running_loop().time()
    await ask((reader, writer))
    async with asyncio.timeout(PATIENCE):
        assert await reader.read() == b""
    assert asyncio.get_running_loop().time() - began > 0.09
    writer.close()
    await stop(server)


class TestATimerThatFires:
    async def test_too_early_for_the_last_answer_is_set_again_for_that(self, connection, tenant):
        await ask(connection)
        tenant.timeout_keep_alive_task.cancel()
        tenant.timeout_keep_alive_handler()
        assert not tenant.transport.is_closing()
        assert tenant.timeout_keep_alive_task.when() > asyncio.get_running_loop().time()
        await ask(connection)

    async def test_while_a_request_is_answered_ends_nothing_and_is_set_again_with_the_answer(
        self, connection, tenant, application
    ):
        application.may_answer.clear()
        asking = asyncio.create_task(ask(connection))
        await until(lambda: application.asked == 2)
        tenant.timeout_keep_alive_task.cancel()
        tenant.timeout_keep_alive_handler()
        assert tenant.timeout_keep_alive_task is None
        application.may_answer.set()
        await asking
        assert tenant.timeout_keep_alive_task.when() > asyncio.get_running_loop().time()


async def test_a_connection_has_one_timer_however_often_it_asks(connection, tenant):
    timer = tenant.timeout_keep_alive_task
    for _ in range(5):
        await ask(connection)
        assert tenant.timeout_keep_alive_task is timer


async def test_a_body_that_comes_after_its_answer_is_waited_for_and_then_the_next_request(connection, tenant):
    reader, writer = connection
    head, blank, body = request_bytes().partition(b"\r\n\r\n")
    writer.write(head + blank)
    async with asyncio.timeout(PATIENCE):
        await reader.readuntil(b"{}")
    writer.write(body[:5])
    await until(lambda: tenant._idle_until == math.inf)
    writer.write(body[5:])
    await until(lambda: tenant._idle_until < math.inf)
    assert tenant.timeout_keep_alive_task.when() > asyncio.get_running_loop().time()
    await ask(connection)
