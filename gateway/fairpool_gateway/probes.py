"""Asks endpoints whether they are well, so that a sick one is found before a tenant's request finds it.

Any answer will do but 502, 503 and 504: a server without that path is alive, and llama.cpp says 503 while it loads. No
connection, or one that breaks before an answer, is as bad as these. Silence tells nothing, for an engine with much to
do may be slow to say so; the log tells of it.

Each endpoint is asked by a task of its own, one question at a time, over the connections that requests use. What always
holds: no endpoint's slowness delays another's question, and no request waits for one.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable

import httpx

from fairpool_gateway.broker import Broker
from fairpool_gateway.config import ProbeSettings
from fairpool_gateway.endpoints import Endpoint
from fairpool_gateway.health import SUSPICIOUS
from fairpool_gateway.upstream import Client, Target, Tls, Transport

log = logging.getLogger(__name__)


class Prober:
    """Asks the endpoints that a broker has, from each `follow` on, until it is closed.

    `credential` says what they ask for at that moment, if they ask for anything.
    """

    def __init__(self, broker: Broker, client: Client, credential: Callable[[], bytes | None] = lambda: None) -> None:
        self._broker = broker
        self._client = client
        self._credential = credential
        self._rules: tuple[ProbeSettings, Tls | None] | None = None
        self._tasks: dict[Endpoint, asyncio.Task[None]] = {}

    def follow(self, settings: ProbeSettings, tls: Tls | None) -> None:
        """Ask the endpoints that are there now, in this way; `tls` is how those over TLS prove themselves."""
        rules, before = (settings, tls), self._rules
        self._rules = rules
        there = set(self._broker.dispatcher.endpoints)
        for endpoint in list(self._tasks):
            if endpoint not in there or rules != before:
                self._tasks.pop(endpoint).cancel()
        for endpoint in there - self._tasks.keys():
            self._tasks[endpoint] = asyncio.create_task(self._watch(endpoint, settings, tls))

    async def aclose(self) -> None:
        """Ask no more."""
        tasks = list(self._tasks.values())
        self._tasks.clear()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _watch(self, endpoint: Endpoint, settings: ProbeSettings, tls: Tls | None) -> None:
        """Ask one endpoint, first at once, and tell of what has changed."""
        http = httpx.AsyncClient(transport=Transport(self._client, tls), timeout=settings.timeout, trust_env=False)
        # Endpoints that were found together are not asked together for ever.
        pause = settings.interval * random.random()  # noqa: S311 - guards nothing
        known: str | None = None
        while True:
            if not endpoint.spec.draining:
                target = Target(endpoint.spec.host, endpoint.spec.port, tls if endpoint.spec.over_tls else None)
                problem = await self._ask(endpoint, http, target, settings)
                if problem != known:
                    _tell(endpoint, problem)
                known = problem
            await asyncio.sleep(pause)
            pause = settings.interval

    async def _ask(
        self, endpoint: Endpoint, http: httpx.AsyncClient, target: Target, settings: ProbeSettings
    ) -> str | None:
        """Put the question, and have the answer heeded; returns what is wrong, or None."""
        url = f"{'http' if target.tls is None else 'https'}://{target}{settings.path}"
        try:
            async with http.stream("GET", url, headers=self._headers(target)) as answer:
                status = answer.status_code
        except httpx.ReadTimeout:
            return f"no answer within {settings.timeout:g} s"
        except httpx.TransportError as error:
            self._broker.probed(endpoint, None)
            return str(error)
        self._broker.probed(endpoint, status)
        return f"it answers {status}" if status in SUSPICIOUS else None

    def _headers(self, target: Target) -> dict[bytes, bytes]:
        credential = self._credential()
        own = {} if credential is None else {b"authorization": b"Bearer " + credential}
        return {b"host": target.authority.encode(), **own}


def _tell(endpoint: Endpoint, problem: str | None) -> None:
    name = endpoint.spec.id
    if problem is None:
        log.info("endpoint %s answers its probe again", name, extra={"endpoint": name})
    else:
        log.warning("endpoint %s fails its probe: %s", name, problem, extra={"endpoint": name})
