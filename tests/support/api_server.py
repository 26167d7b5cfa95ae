"""A stand-in for the API server that does what a real one should not: it loses events, falls silent, answers nonsense.

For what a real one does there is `tests/cluster`. Each request waits in a queue until the test answers it.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import ssl
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

    def __init__(self, endpoint: ScriptedEndpoint, scheme: str) -> None:
        self._endpoint = endpoint
        self._scheme = scheme
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

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"{self._scheme}://{self._endpoint.target}"

    @classmethod
    @contextlib.asynccontextmanager
    async def serving(cls, context: ssl.SSLContext | None = None) -> AsyncIterator[ApiServer]:
        """One, for TLS if there is a context."""
        async with ScriptedEndpoint.listening(context) as endpoint:
            server = cls(endpoint, "http" if context is None else "https")
            server._tasks.append(asyncio.create_task(server._accept()))
            try:
                yield server
            finally:
                for task in server._tasks:
                    task.cancel()
                await asyncio.gather(*server._tasks, return_exceptions=True)

    @classmethod
    @contextlib.asynccontextmanager
    async def listening(cls, directory: Path, *, seconds: float = PATIENCE) -> AsyncIterator[tuple[ApiServer, Cluster]]:
        """One, and the gateway's cluster, connected to it; `seconds` is how long its answers may take."""
        async with cls.serving() as server:
            cluster = await connect(kubeconfig(directory, server.url))
            cluster._seconds = seconds
            try:
                yield server, cluster
            finally:
                await cluster.aclose()


def kubeconfig(directory: Path, server: str, authority: bytes | None = None) -> Path:
    """A file that leads to that server, and trusts that authority alone if there is one."""
    cluster = {"server": server}
    if authority is not None:
        cluster["certificate-authority-data"] = base64.b64encode(authority).decode()
    file = directory / "kubeconfig"
    file.write_text(
        json.dumps(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "clusters": [{"name": "c", "cluster": cluster}],
                "users": [{"name": "u", "user": {"token": "a-secret-token"}}],
                "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
                "current-context": "c",
            }
        )
    )
    return file
