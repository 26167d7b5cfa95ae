"""Puts a question to each endpoint, again and again, over the connections that requests use.

Each endpoint is asked by a task of its own, one question at a time. What always holds: no endpoint's slowness delays
another's question, no request waits for one, and an endpoint that drains is not asked.
"""

from __future__ import annotations

import abc
import asyncio
import random
from collections.abc import Callable

import httpx

from fairpool_gateway.broker import Broker
from fairpool_gateway.config import ProbeSettings
from fairpool_gateway.endpoints import Endpoint
from fairpool_gateway.upstream import Client, Target, Tls, Transport


class Question:
    """One question to one endpoint: GET of a path, and how long an answer may take.

    `told` is for whoever asks, to tell of a problem once.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        settings: ProbeSettings,
        http: httpx.AsyncClient,
        tls: Tls | None,
        credential: Callable[[], bytes | None],
    ) -> None:
        self.endpoint = endpoint
        self.settings = settings
        self.told: str | None = None
        self._http = http
        self._tls = tls
        self._credential = credential

    async def put(self, path: str, *, most: int = 0) -> tuple[int, bytes]:
        """The status of the answer, and its body if that has at most `most` bytes, else nothing of it.

        Raises:
            httpx.TransportError: there was no answer.
        """
        spec, credential = self.endpoint.spec, self._credential()
        target = Target(spec.host, spec.port, self._tls if spec.over_tls else None)
        headers = {b"host": target.authority.encode()}
        if credential is not None:
            headers[b"authorization"] = b"Bearer " + credential
        url = f"{'http' if target.tls is None else 'https'}://{target}{path}"
        body = b""
        async with self._http.stream("GET", url, headers=headers) as answer:
            if most:
                async for piece in answer.aiter_bytes():
                    body += piece
                    if len(body) > most:
                        return answer.status_code, b""
            return answer.status_code, body


class Asker(abc.ABC):
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
        """Ask one endpoint, first at once."""
        http = httpx.AsyncClient(transport=Transport(self._client, tls), timeout=settings.timeout, trust_env=False)
        question = Question(endpoint, settings, http, tls, self._credential)
        # Endpoints that were found together are not asked together for ever.
        spread = random.random()  # noqa: S311 - guards nothing
        while True:
            pause = settings.interval if endpoint.spec.draining else await self._ask(question)
            await asyncio.sleep(pause * spread)
            spread = 1.0

    @abc.abstractmethod
    async def _ask(self, question: Question) -> float:
        """Put the question, and have the answer heeded; returns how long to wait before the next."""
