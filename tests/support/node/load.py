"""Steady load with an account of every request: what was sent was answered, refused with a reason, or lost.

Clients are the official one, told never to ask again, so that nothing that is lost is made good unseen. Each asks again
as soon as its last request has ended, half of them for whole answers and half for streams. A request is *lost* if it
ended neither in a whole answer nor in a refusal of the gateway's own; of a stream the account knows how much had come.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import pairwise, repeat
from typing import Any, Final

import httpx
import openai
from support.node.engines import MODEL

PATIENCE: Final = 120.0
CLIENTS: Final = 6
"""For each key, unless a test says otherwise."""

REASON: Final = "x-fairpool-reason"

Body = dict[str, Any]
"""What one request asks for, as the client takes it."""

_CONNECT: Final = 20.0
_PAUSE: Final = 0.05
"""Seconds between a refusal and the next request, so that refusals stay countable."""


@dataclass(frozen=True)
class Ended:
    """How one request ended, and when, by the clock of the event loop: a reason if refused, an error if lost."""

    began: float
    ended: float
    reason: str = ""
    lost: str = ""


@dataclass
class Account:
    """All requests of a load. `sent` counts when a request begins, so nothing can be forgotten."""

    sent: int = 0
    ends: list[Ended] = field(default_factory=list)

    @property
    def answered(self) -> int:
        """How many were answered whole."""
        return sum(not end.reason and not end.lost for end in self.ends)

    @property
    def refused(self) -> Counter[str]:
        """How many were refused, by reason."""
        return Counter(end.reason for end in self.ends if end.reason)

    @property
    def lost(self) -> list[str]:
        """What became of the others."""
        return [end.lost for end in self.ends if end.lost]

    @property
    def refusing_seconds(self) -> float:
        """From the first refusal to the last."""
        times = [end.ended for end in self.ends if end.reason]
        return max(times) - min(times) if times else 0.0

    @property
    def losing_seconds(self) -> float:
        """From the first that was lost to the last."""
        times = [end.ended for end in self.ends if end.lost]
        return max(times) - min(times) if times else 0.0

    @property
    def longest_silence(self) -> float:
        """The longest time in which nothing was answered."""
        times = sorted(end.ended for end in self.ends if not end.reason and not end.lost)
        return max((b - a for a, b in pairwise(times)), default=0.0)

    def __str__(self) -> str:
        told = f"{self.sent} sent, {self.answered} answered, refused {dict(self.refused)}, lost {len(self.lost)}"
        silence = f"longest silence {self.longest_silence:.1f} s"
        return f"{told}; refusing for {self.refusing_seconds:.1f} s; {silence}"


class Load:
    """Clients of one pool, until the block of `load_on` ends."""

    def __init__(self, url: str) -> None:
        self.account = Account()
        self._url = url
        self._more = asyncio.Condition()
        self._ending = False

    async def answers(self, more: int, within: float = PATIENCE) -> None:
        """Wait for so many answers from now on."""
        until = self.account.answered + more
        async with asyncio.timeout(within), self._more:
            await self._more.wait_for(lambda: self.account.answered >= until)

    async def until(self, condition: Callable[[Account], bool], within: float = PATIENCE) -> None:
        """Wait until the account is so."""
        async with asyncio.timeout(within), self._more:
            await self._more.wait_for(lambda: condition(self.account))

    def end(self) -> None:
        """Have every client send no more."""
        self._ending = True

    async def ask_on(self, key: str, stream: bool, bodies: Iterator[Body]) -> None:
        """Be one client, until the load ends."""
        async with client_of(self._url, key) as client:
            while not self._ending:
                end = await self.once(client, stream, next(bodies))
                if end.reason or end.lost:
                    await asyncio.sleep(_PAUSE)

    async def once(self, client: openai.AsyncOpenAI, stream: bool, body: Body) -> Ended:
        """Send one request, and count how it ends."""
        end = await self._once(client, stream, body)
        async with self._more:
            self.account.ends.append(end)
            self._more.notify_all()
        return end

    async def _once(self, client: openai.AsyncOpenAI, stream: bool, body: Body) -> Ended:
        self.account.sent += 1
        began, events = time.monotonic(), 0
        try:
            if stream:
                answer = await client.chat.completions.create(**body, stream=True)
                async for event in answer:
                    events += 1
                    last = event
                whole = bool(events) and last.choices[0].finish_reason == "length"
            else:
                said = await client.chat.completions.create(**body)
                whole = said.choices[0].finish_reason == "length"
        except openai.APIStatusError as refused:
            if reason := refused.response.headers.get(REASON):
                return Ended(began, time.monotonic(), reason=f"{refused.status_code} {reason}")
            return Ended(began, time.monotonic(), lost=f"{refused.status_code} without a reason: {refused.message}")
        except openai.APIError as error:
            cause = error.__cause__ or error
            return Ended(began, time.monotonic(), lost=f"{type(cause).__name__} after {events} events: {cause}")
        if not whole:
            return Ended(began, time.monotonic(), lost=f"given up by the engine after {events} events")
        return Ended(began, time.monotonic())


def client_of(url: str, key: str) -> openai.AsyncOpenAI:
    """The official client, which asks once only, and soon gives up where nobody answers: as where a Service was."""
    timeout = httpx.Timeout(2 * PATIENCE, connect=_CONNECT)
    return openai.AsyncOpenAI(base_url=url, api_key=key, max_retries=0, timeout=timeout)


def question(tokens: int, words: int = 5, **more: Any) -> Body:
    """A request for an answer of just this length."""
    messages = [{"role": "user", "content": "word " * words}]
    fixed = {"ignore_eos": True}
    return {"model": MODEL, "messages": messages, "max_tokens": tokens, "extra_body": fixed, **more}


@asynccontextmanager
async def load_on(
    url: str, keys: Iterable[str], clients: int = CLIENTS, bodies: Iterator[Body] | None = None
) -> AsyncIterator[Load]:
    """So many clients for each key, for the block; when it ends every request has ended, and the account adds up.

    What they ask for is an endless iterator, by default the same question of 40 tokens.
    """
    load = Load(url)
    asked = bodies or repeat(question(40))
    asking = [
        asyncio.create_task(load.ask_on(key, number % 2 == 1, asked)) for key in keys for number in range(clients)
    ]
    try:
        yield load
        load.end()
        async with asyncio.timeout(2 * PATIENCE):
            await asyncio.gather(*asking)
    finally:
        for task in asking:
            task.cancel()
        await asyncio.gather(*asking, return_exceptions=True)
    account = load.account
    assert account.answered + account.refused.total() + len(account.lost) == account.sent == len(account.ends)
