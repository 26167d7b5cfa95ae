"""A stand-in for the API server that does what a real one should not: it loses events, falls silent, answers nonsense.

For what a real one does there is `tests/cluster`. Each request waits in a queue until the test answers it.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from support.scripted_endpoint import PATIENCE, Peer, ScriptedEndpoint

from fairpool_gateway.cluster.client import Cluster, connect


class Asked:
    """One request, to be answered as the test likes."""

    def __init__(self, peer: Peer, head: bytes, body: bytes) -> None:
        self.peer = peer
        self.head = head.decode()
        self.body = body
        self.method, target, _ = self.head.split(" ", 2)
        self.path = urlsplit(target).path
        self.query = {name: values[-1] for name, values in parse_qs(urlsplit(target).query).items()}

    @property
    def watches(self) -> bool:
        """Whether it is a watch."""
        return "watch" in self.query

    async def answer(self, status: int, document: Any) -> None:
        """Answer as a whole, and keep the connection."""
        body = document if isinstance(document, bytes) else json.dumps(document).encode()
        await self.peer.send(
            b"HTTP/1.1 %d X\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%b"
            % (status, len(body), body)
        )

    async def list(self, *objects: dict[str, Any], version: str = "1", more: str | None = None) -> None:
        """Answer with a list, or a page of one."""
        await self.answer(200, {"metadata": {"resourceVersion": version, "continue": more}, "items": list(objects)})

    async def refuse(self, status: int, message: str) -> None:
        """Answer with a Status."""
        await self.answer(status, {"kind": "Status", "code": status, "message": message})

    async def open(self) -> None:
        """Agree to a watch."""
        await self.peer.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")

    async def tell(self, kind: str, document: dict[str, Any]) -> None:
        """An event of a watch."""
        await self.say(json.dumps({"type": kind, "object": document}).encode() + b"\n")

    async def say(self, data: bytes) -> None:
        """Any piece of a watch."""
        await self.peer.send(b"%x\r\n%b\r\n" % (len(data), data))

    async def end(self) -> None:
        """The proper end of a watch."""
        await self.peer.send(b"0\r\n\r\n")


class ApiServer:
    """Listens on loopback and hands each request to the test."""

    def __init__(self, endpoint: ScriptedEndpoint) -> None:
        self._endpoint = endpoint
        self._asked: asyncio.Queue[Asked] = asyncio.Queue()
        self._tasks: list[asyncio.Task[None]] = []

    async def next(self) -> Asked:
        """The next request."""
        async with asyncio.timeout(PATIENCE):
            return await self._asked.get()

    @property
    def asked(self) -> int:
        """How many requests wait to be answered."""
        return self._asked.qsize()

    async def _accept(self) -> None:
        while True:
            peer = await self._endpoint._peers.get()
            self._tasks.append(asyncio.create_task(self._read(peer)))

    async def _read(self, peer: Peer) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError, TimeoutError):
            while True:
                self._asked.put_nowait(Asked(peer, *await peer.request()))

    @classmethod
    @contextlib.asynccontextmanager
    async def listening(cls, directory: Path, *, seconds: float = PATIENCE) -> AsyncIterator[tuple[ApiServer, Cluster]]:
        """One, and a cluster that is connected to it; `seconds` is how long its answers may take."""
        async with ScriptedEndpoint.listening() as endpoint:
            server = cls(endpoint)
            server._tasks.append(asyncio.create_task(server._accept()))
            file = directory / "kubeconfig"
            file.write_text(json.dumps(_kubeconfig(f"http://{endpoint.target}")))
            cluster = await connect(file)
            cluster._seconds = seconds
            try:
                yield server, cluster
            finally:
                await cluster.aclose()
                for task in server._tasks:
                    task.cancel()
                await asyncio.gather(*server._tasks, return_exceptions=True)


def _kubeconfig(server: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": {"server": server}}],
        "users": [{"name": "u", "user": {"token": "a-secret-token"}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "c",
    }
