"""Leaving without losing a request: what a gateway does between SIGTERM and its end.

In a pod, endpoints of a Service go on sending for a while after the pod began to end, and clients keep connections
open. So it first *lingers*: it serves on, with `Connection: close`, and stays ready, until nothing has arrived for a
while. Then it *drains*: it answers `draining` to what is new, and finishes what waits and runs. Standalone, where
whoever balances reads `/readyz`, it drains at once.
"""

from __future__ import annotations

import asyncio
import enum
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from fairpool_gateway.app.headers import CLOSE

Message = MutableMapping[str, Any]
Send = Callable[[Message], Awaitable[None]]

QUIET_SECONDS = 5.0
LONGEST_LINGER_SECONDS = 30.0


class Phase(enum.Enum):
    """How far a gateway is on its way out."""

    SERVING = enum.auto()
    LINGERING = enum.auto()
    DRAINING = enum.auto()


SERVING, LINGERING, DRAINING = Phase
"""By themselves, as the states of a request are (`request.py`)."""


class Shutdown:
    """The phases of one gateway.

    Args:
        in_pod: whether requests go on arriving after SIGTERM, through a Service.
    """

    def __init__(self, *, in_pod: bool = False) -> None:
        self.phase = SERVING
        self._in_pod = in_pod
        self._loop = asyncio.get_running_loop()
        self._last_arrival = 0.0

    def arrived(self) -> None:
        """A request came."""
        self._last_arrival = self._loop.time()

    async def linger(self) -> None:
        """Go through the phases up to draining; returns when that has begun."""
        if self._in_pod:
            self.phase = LINGERING
            self._last_arrival = began = self._loop.time()
            while (left := self._quiet_at(began) - self._loop.time()) > 0:  # noqa: ASYNC110 - sleeps to a moment that moves
                await asyncio.sleep(left)
        self.phase = DRAINING

    def _quiet_at(self, began: float) -> float:
        return min(self._last_arrival + QUIET_SECONDS, began + LONGEST_LINGER_SECONDS)


def closing(send: Send) -> Send:
    """Answer through `send`, and have the connection closed after it."""

    async def send_and_close(message: Message) -> None:
        if message["type"] == "http.response.start":
            message["headers"] = [*message.get("headers", ()), CLOSE]
        await send(message)

    return send_and_close
