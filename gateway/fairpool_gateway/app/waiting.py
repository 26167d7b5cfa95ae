"""The beginning of a gateway whose configuration is in a Secret that may not be there yet.

It has its admin port, where `/readyz` fails and says what is missing, and nothing else. What always holds: what comes
out of it can be served, the endpoints' credential included.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
from collections.abc import AsyncIterator, Coroutine

from fairpool_gateway.app.admin import waiting_routes
from fairpool_gateway.app.credential import read_credential
from fairpool_gateway.app.kubernetes import Kubernetes
from fairpool_gateway.app.server import HttpServer, address_of, http_server
from fairpool_gateway.config import PoolConfig
from fairpool_gateway.errors import ConfigInvalid

log = logging.getLogger(__name__)

_TRY_EVERY = 2.0
"""Seconds between looks at a credential that cannot be read."""


class FirstConfig:
    """The first configuration of a gateway, once it is there and can be served."""

    def __init__(self, kubernetes: Kubernetes) -> None:
        follower = kubernetes.config(self._applied, self._refused)
        assert follower is not None, "a gateway without a file has a Secret"
        self._follower = follower
        self._problem: str | None = None
        self._seen: tuple[PoolConfig, str] | None = None
        self._news = asyncio.Event()

    async def wait(self, admin: socket.socket, stop: asyncio.Event) -> tuple[PoolConfig, str] | None:
        """Wait for it, and return it with its hash; None where that is stopped before.

        Health is told on the `admin` port meanwhile, which stays open.
        """
        log.info("waiting for %s, admin on http://%s", self._follower.where, address_of(admin))
        async with _at_work(self._follower.follow()), _served(http_server(waiting_routes(self._why)), admin.dup()):
            usable, stopped = asyncio.create_task(self._usable()), asyncio.create_task(stop.wait())
            await asyncio.wait((usable, stopped), return_when=asyncio.FIRST_COMPLETED)
            stopped.cancel()
            if usable.done():
                return usable.result()
            usable.cancel()
            return None

    def _why(self) -> str:
        """What is waited for."""
        return self._problem or f"{self._follower.where}: {self._follower.problem or 'is being read'}"

    def _applied(self, config: PoolConfig, config_hash: str) -> None:
        self._seen = config, config_hash
        self._news.set()

    def _refused(self, problem: ConfigInvalid) -> None:
        self._seen = None
        self._tell(str(problem))

    async def _usable(self) -> tuple[PoolConfig, str]:
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_TRY_EVERY):  # of 3.11, wait_for may swallow an end that meets the news
                    await self._news.wait()
            self._news.clear()
            if (seen := self._seen) is None:
                continue
            try:
                await asyncio.to_thread(read_credential, seen[0].endpoint_credential)
            except ConfigInvalid as problem:
                self._tell(str(problem))
            else:
                return seen

    def _tell(self, problem: str) -> None:
        if problem != self._problem:
            log.warning("there is nothing to serve yet: %s", problem)
        self._problem = problem


@contextlib.asynccontextmanager
async def _at_work(work: Coroutine[None, None, None]) -> AsyncIterator[None]:
    """Have this done as long as the block runs."""
    task = asyncio.create_task(work)
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait([task])


@contextlib.asynccontextmanager
async def _served(server: HttpServer, port: socket.socket) -> AsyncIterator[None]:
    """Have this served as long as the block runs."""
    task = asyncio.create_task(server.serve(sockets=[port]))
    try:
        yield
    finally:
        server.should_exit = True
        await task
