"""Waiting for what can only be asked for, again and again: what a process shows of itself, and how it answers."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

import openai
from support.node.load import client_of, question

PATIENCE: Final = 180.0
"""Seconds after which each of Kubernetes' controllers has surely found back to an API server that was away."""

_AGAIN: Final = 0.02

Found = TypeVar("Found")


async def until(ask: Callable[[], Awaitable[Found]], within: float = PATIENCE) -> Found:
    """Ask until the answer is true; returns it."""
    async with asyncio.timeout(within):
        while not (found := await ask()):  # noqa: ASYNC110 - there is nothing to watch
            await asyncio.sleep(_AGAIN)
    return found


async def first_answer(url: str, key: str, within: float = PATIENCE) -> str:
    """Ask as a tenant until there is an answer; returns its text."""
    async with client_of(url, key) as client:

        async def answered() -> str:
            try:
                answer = await client.chat.completions.create(**question(4))
            except openai.APIError:
                return ""
            return answer.choices[0].message.content or ""

        return await until(answered, within)
