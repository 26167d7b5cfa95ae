"""Tenants that take their answers slowly, or not at all: they keep no slot, and the endpoint is held back for them."""

import asyncio
import json
import socket
from functools import partial
from itertools import count

from support.config import pool_config
from support.gateway import running_gateway
from support.scripted_endpoint import ScriptedEndpoint, until

from fairpool_gateway.app import server
from fairpool_gateway.app.connection import TenantConnection
from fairpool_gateway.upstream.buffers import HIGH_WATER

QUESTION = json.dumps({"model": "sim", "messages": [], "stream": True}).encode()


def pool(endpoint):
    url = f"http://{endpoint.target.host}:{endpoint.target.port}"
    return pool_config(models=["sim"], endpoints=[{"name": "e", "url": url}])


async def ask_and_read_nothing(port, *, times=1):
    """A tenant with a small receive buffer that sends its request, so many times, and then never reads."""
    mute = socket.socket()
    mute.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    mute.setblocking(False)
    loop = asyncio.get_running_loop()
    await loop.sock_connect(mute, ("127.0.0.1", port))
    head = b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(QUESTION)
    await loop.sock_sendall(mute, times * (head + QUESTION))
    return mute


async def test_the_slot_is_given_back_at_the_endpoints_last_byte():
    async with ScriptedEndpoint.listening() as endpoint, running_gateway(pool(endpoint)) as gateway:
        with await ask_and_read_nothing(gateway.port):
            peer = await endpoint.accept()
            await peer.request()
            assert gateway.in_flight == 1
            await peer.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
            for _ in range(12):
                await peer.send(b"%x\r\n%b\r\n" % (1 << 16, bytes(1 << 16)))
            assert gateway.in_flight == 1
            await peer.send(b"0\r\n\r\n")
            await until(lambda: gateway.in_flight == 0)


async def test_so_is_that_of_a_request_behind_answers_that_nobody_takes(monkeypatch):
    held_up = asyncio.Event()

    async def drained(connection):
        if connection.flow.write_paused:
            held_up.set()
            await connection.flow.drain()

    monkeypatch.setattr(TenantConnection, "drained", drained)
    async with ScriptedEndpoint.listening() as endpoint, running_gateway(pool(endpoint)) as gateway:
        with await ask_and_read_nothing(gateway.port, times=14):
            peer = await endpoint.accept()
            answered = count(1)
            while not held_up.is_set():
                await peer.request()
                await peer.answer(bytes(60_000))
                await until(
                    partial(lambda number: held_up.is_set() or gateway.outcomes["answered"] == number, next(answered))
                )
            await until(lambda: gateway.in_flight == 0)


async def test_beyond_what_may_wait_the_endpoint_is_held_back_and_keeps_its_slot():
    async with ScriptedEndpoint.listening() as endpoint, running_gateway(pool(endpoint)) as gateway:
        with await ask_and_read_nothing(gateway.port):
            peer = await endpoint.accept()
            await peer.request()
            await peer.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % (1 << 30))
            flood = asyncio.create_task(peer.send(bytes(64 << 20)))
            await until(lambda: gateway.gateway.client.buffered > HIGH_WATER)
            assert gateway.gateway.client.buffered <= HIGH_WATER + (1 << 20)
            assert gateway.in_flight == 1
            assert not flood.done()
            flood.cancel()
        await peer.gone()
        await until(lambda: gateway.in_flight == 0)
        assert gateway.gateway.client.buffered == 0


async def test_a_tenant_that_takes_nothing_is_cut_and_its_request_ended(monkeypatch):
    monkeypatch.setattr(server, "UNREAD_SECONDS", 0.5)
    async with ScriptedEndpoint.listening() as endpoint, running_gateway(pool(endpoint)) as gateway:
        with await ask_and_read_nothing(gateway.port):
            peer = await endpoint.accept()
            await peer.request()
            await peer.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % (1 << 30))
            flood = asyncio.create_task(peer.send(bytes(64 << 20)))
            await peer.gone()
            flood.cancel()
            await until(lambda: gateway.in_flight == 0)
