"""Accepting connections: bounded from their first moment, and going on when descriptors run out."""

import asyncio
import contextlib
import errno
import socket

import pytest
from support.scripted_endpoint import until

from fairpool_gateway.app import listener as listeners
from fairpool_gateway.app.listener import Listener
from fairpool_gateway.app.server import listen


class Kept(asyncio.Protocol):
    """A connection that is kept until the other side leaves."""

    kept: set

    def connection_made(self, transport):
        self.kept.add(self)
        self.transport = transport

    def connection_lost(self, exc):
        self.kept.discard(self)


@contextlib.asynccontextmanager
async def listening(sock=None, **options):
    kept = set()
    protocol = type("Kept", (Kept,), {"kept": kept})
    made = Listener(sock or listen("127.0.0.1", 0), protocol, kept, **options)
    try:
        yield made
    finally:
        made.close()
        await made.wait_closed()
        for connection in list(kept):
            connection.transport.abort()
        await until(lambda: not kept)


@contextlib.asynccontextmanager
async def connections(made, number):
    """So many connections to it."""
    lines = [await asyncio.open_connection(*made._socket.getsockname()) for _ in range(number)]
    try:
        yield lines
    finally:
        for _, writer in lines:
            writer.transport.abort()


async def test_handshakes_count_and_so_bound_those_who_never_end_theirs(authority):
    async with listening(most=3, tls=authority.serving()) as made, connections(made, 5) as lines:
        await until(lambda: made.refused == 2)
        assert made.connections == 3
        ended = [asyncio.create_task(reader.read()) for reader, _ in lines]
        await until(lambda: sum(task.done() for task in ended) == 2)
        for task in ended:
            task.cancel()
        await asyncio.gather(*ended, return_exceptions=True)


async def test_a_handshake_that_is_not_over_in_time_gives_its_place_back(authority, monkeypatch):
    monkeypatch.setattr(listeners, "HEAD_SECONDS", 0.1)
    async with listening(most=1, tls=authority.serving()) as made, connections(made, 1) as lines:
        await until(lambda: made.connections == 1)
        with contextlib.suppress(ConnectionError):
            assert await lines[0][0].read() == b""
        await until(lambda: made.connections == 0)


async def test_one_that_leaves_makes_place_for_another():
    async with listening(most=1) as made:
        for _ in range(3):
            async with connections(made, 1):
                await until(lambda: made.connections == 1)
            await until(lambda: made.connections == 0)
        assert made.refused == 0


class WithoutDescriptors:
    """A listening socket whose `accept` fails as if no descriptor was left, so many times; counts how often."""

    def __init__(self, sock, times):
        self._sock = sock
        self.times = times
        self.asked = 0

    def accept(self):
        self.asked += 1
        if self.asked <= self.times:
            raise OSError(errno.EMFILE, "Too many open files")
        return self._sock.accept()

    def __getattr__(self, name):
        return getattr(self._sock, name)


async def test_where_descriptors_run_out_it_pauses_does_not_spin_and_goes_on(monkeypatch):
    monkeypatch.setattr(listeners, "PAUSE_SECONDS", 0.1)
    sock = WithoutDescriptors(listen("127.0.0.1", 0), times=2)
    async with listening(sock) as made, connections(made, 1):
        await until(lambda: sock.asked)
        await asyncio.sleep(0.05)
        assert sock.asked == 1
        await until(lambda: made.connections == 1)
        assert 3 <= sock.asked <= 4


@pytest.mark.parametrize("paused", [False, True], ids=["", "while it pauses"])
async def test_closed_it_frees_its_port(monkeypatch, paused):
    sock = listen("127.0.0.1", 0)
    port = sock.getsockname()[1]
    async with listening(WithoutDescriptors(sock, times=10 if paused else 0)) as made, connections(made, 1):
        await until(lambda: made._socket.asked)
        made.close()
        with socket.create_server(("127.0.0.1", port)):
            pass
