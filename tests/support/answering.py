"""An endpoint that answers whatever it is asked, and keeps what that was."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

from support.scripted_endpoint import Peer, ScriptedEndpoint

from fairpool_gateway.upstream import Target

JSON = b"content-type: application/json\r\n"


@dataclass
class AnsweringEndpoint:
    """What was asked, as heads and bodies, oldest first; and what is answered, which may be changed at any time.

    Nothing is answered while `may_answer` is not set.
    """

    target: Target
    answer: bytes = b"{}"
    headers: bytes = JSON
    may_answer: asyncio.Event = field(default_factory=asyncio.Event)
    asked: list[tuple[bytes, bytes]] = field(default_factory=list)

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://{self.target}"

    def path(self) -> str:
        """The path of the last request."""
        return self.asked[-1][0].split(b" ")[1].decode()

    def header(self, name: str) -> str | None:
        """A header of the last request."""
        for line in self.asked[-1][0].split(b"\r\n")[1:-2]:
            key, _, value = line.decode("latin-1").partition(": ")
            if key.lower() == name:
                return value
        return None

    async def serve(self, peer: Peer) -> None:
        """Answer one connection's requests until it ends."""
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError, TimeoutError):
            while True:
                self.asked.append(await peer.request())
                await self.may_answer.wait()
                await peer.answer(self.answer, headers=self.headers)


@contextlib.asynccontextmanager
async def answering_endpoint() -> AsyncIterator[AnsweringEndpoint]:
    """An endpoint on a port that the kernel chose; at the end everything is closed."""
    async with ScriptedEndpoint.listening() as scripted:
        endpoint = AnsweringEndpoint(scripted.target)
        endpoint.may_answer.set()

        async def accept() -> None:
            async with asyncio.TaskGroup() as serving:
                while True:
                    with contextlib.suppress(TimeoutError):
                        serving.create_task(endpoint.serve(await scripted.accept()))

        accepting = asyncio.create_task(accept())
        try:
            yield endpoint
        finally:
            accepting.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await accepting
