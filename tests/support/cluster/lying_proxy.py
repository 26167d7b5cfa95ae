"""An API server that lies: a proxy that reads what passes, and loses, refuses or withholds what a test tells it to.

It ends the client's TLS with a certificate of the same authority and asks the true server with the client's own token,
so programs need nothing but its URL. It keeps what is asked, which also tells how busy a program is at rest.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Final

import aiohttp
from aiohttp import web
from support.cluster.control_plane import ControlPlane

_HOP_BY_HOP: Final = frozenset({"connection", "host", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade"})
_REASONS: Final = {403: "Forbidden", 404: "NotFound", 409: "Conflict", 410: "Expired", 429: "TooManyRequests"}
_ENDLESS: Final = aiohttp.ClientTimeout(total=None, sock_connect=10)


@dataclass(frozen=True)
class Asked:
    """One request: of which collection (`pods`), in which namespace, of which object; empty where it names none.

    `labels` is by which labels it selects.
    """

    method: str
    path: str
    watching: bool
    resource: str
    namespace: str
    name: str
    subresource: str
    labels: str

    @property
    def verb(self) -> str:
        """As RBAC calls it."""
        if self.method == "GET":
            return "watch" if self.watching else "get" if self.name else "list"
        return {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}[self.method]


@dataclass(eq=False)
class _Watch:
    """An open watch; past its `patience` it is told that it is spoilt."""

    asked: Asked
    patience: asyncio.Timeout
    spoilt: int = 410


Matches = Callable[[Asked], bool]
Loses = Callable[[dict[str, Any]], bool]


def asking(resource: str, *verbs: str) -> Matches:
    """Matches requests for a collection such as `pods`, by these verbs or by any."""
    return lambda asked: asked.resource == resource and (not verbs or asked.verb in verbs)


@dataclass(eq=False)
class Lie:
    """What is said instead of the truth, to whom, and how often (`told`) it was; `end()` has the truth told again."""

    about: Matches
    status: int | None = None
    loses: Loses | None = None
    times: int | None = None
    told: int = 0
    _over: asyncio.Event = field(default_factory=asyncio.Event)

    def end(self) -> None:
        """Tell the truth again; what hangs is answered now."""
        self._over.set()

    def holds(self, asked: Asked) -> bool:
        """Whether it is this lie's turn."""
        return not self._over.is_set() and (self.times is None or self.told < self.times) and self.about(asked)

    async def over(self) -> None:
        """Wait for its end."""
        await self._over.wait()


class LyingProxy:
    """Listens at `url`; honest until told to lie. `requests` has what was asked, in order."""

    def __init__(self, plane: ControlPlane, truth: str | None = None) -> None:
        self.requests: list[Asked] = []
        self.url = ""
        self._plane = plane
        self._truth = truth or plane.access.url
        self._lies: list[Lie] = []
        self._watches: set[_Watch] = set()
        application = web.Application(client_max_size=64 * 1024 * 1024)
        application.router.add_route("*", "/{path:.*}", self._answer)
        self._runner = web.AppRunner(application, handler_cancellation=True, access_log=None, shutdown_timeout=0.1)
        self._there: aiohttp.ClientSession | None = None

    def refuse(self, about: Matches, status: int, times: int | None = None) -> Lie:
        """Answer with a refusal, such as 410 or 403."""
        return self._tell(Lie(about, status=status, times=times))

    def hang(self, about: Matches, times: int | None = None) -> Lie:
        """Answer nothing until the lie ends."""
        return self._tell(Lie(about, times=times))

    def lose(self, about: Matches, loses: Loses) -> Lie:
        """Leave out these events of watches, also of those that are open already."""
        return self._tell(Lie(about, loses=loses))

    def lose_type(self, resource: str, *types: str) -> Lie:
        """Leave out events such as DELETED of watches of a collection; all events if no type is given."""
        return self.lose(asking(resource, "watch"), lambda event: not types or event["type"] in types)

    def spoil_watches(self, about: Matches, status: int = 410) -> int:
        """Tell open watches, as a server does, that they cannot go on; returns how many."""
        chosen = [watch for watch in self._watches if about(watch.asked)]
        for watch in chosen:
            watch.spoilt = status
            watch.patience.reschedule(asyncio.get_running_loop().time())
        return len(chosen)

    def watching(self, about: Matches) -> int:
        """How many such watches are open."""
        return sum(about(watch.asked) for watch in self._watches)

    async def start(self) -> None:
        """Listen on a port that the kernel chooses."""
        connector = aiohttp.TCPConnector(ssl=self._plane.access.trust(), limit=0)
        self._there = aiohttp.ClientSession(connector=connector, auto_decompress=False, timeout=_ENDLESS)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0, ssl_context=self._plane.serving()).start()
        self.url = f"https://127.0.0.1:{self._runner.addresses[0][1]}"

    async def stop(self) -> None:
        """End all connections."""
        for lie in self._lies:
            lie.end()
        await self._runner.cleanup()
        assert self._there is not None
        await self._there.close()

    def _tell(self, lie: Lie) -> Lie:
        self._lies.append(lie)
        return lie

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        asked = _asked(request)
        self.requests.append(asked)
        for lie in self._lies:
            if lie.loses is None and lie.holds(asked):
                lie.told += 1
                if lie.status is not None:
                    return web.json_response(_status(lie.status), status=lie.status)
                await lie.over()
        assert self._there is not None
        headers = {name: value for name, value in request.headers.items() if name.lower() not in _HOP_BY_HOP}
        try:
            async with self._there.request(
                request.method,
                self._truth + request.raw_path,
                headers=headers | {"Accept-Encoding": "identity"},
                data=await request.read() or None,
                allow_redirects=False,
            ) as truth:
                return await self._repeat(request, asked, truth)
        except aiohttp.ClientError:
            if request.transport is not None:
                request.transport.abort()
            raise web.HTTPBadGateway from None

    async def _repeat(self, request: web.Request, asked: Asked, truth: aiohttp.ClientResponse) -> web.StreamResponse:
        kept = {name: value for name, value in truth.headers.items() if name.lower() not in _HOP_BY_HOP}
        if not asked.watching or truth.status != 200:
            return web.Response(status=truth.status, body=await truth.read(), headers=kept)
        response = web.StreamResponse(headers=kept)
        await response.prepare(request)
        watch = _Watch(asked, asyncio.timeout(None))
        self._watches.add(watch)
        try:
            async with watch.patience:
                async for line in truth.content:
                    if not self._lost(asked, line):
                        await response.write(line)
        except TimeoutError:
            event = {"type": "ERROR", "object": _status(watch.spoilt)}
            await response.write(json.dumps(event).encode() + b"\n")
        finally:
            self._watches.discard(watch)
        return response

    def _lost(self, asked: Asked, line: bytes) -> bool:
        for lie in self._lies:
            if lie.loses is not None and lie.holds(asked) and lie.loses(json.loads(line)):
                lie.told += 1
                return True
        return False


@asynccontextmanager
async def lying_proxy(plane: ControlPlane, truth: str | None = None) -> AsyncIterator[LyingProxy]:
    """A proxy in front of the control plane, for the block; `plane.access.via(proxy.url)` leads through it.

    `truth` is where it asks, when that is not the server itself but a network in front of it.
    """
    proxy = LyingProxy(plane, truth)
    await proxy.start()
    try:
        yield proxy
    finally:
        await proxy.stop()


def _asked(request: web.Request) -> Asked:
    watching = request.query.get("watch", "") in {"1", "true", "True"}
    _, root, *parts = request.path.split("/")
    parts = parts[{"api": 1, "apis": 2}.get(root, len(parts)) :]
    namespace = ""
    if parts[:1] == ["namespaces"] and len(parts) > 2 and parts[2] not in {"status", "finalize"}:
        _, namespace, *parts = parts
    resource, name, subresource = (*parts, "", "", "")[:3]
    labels = request.query.get("labelSelector", "")
    return Asked(request.method, request.path, watching, resource, namespace, name, subresource, labels)


def _status(code: int) -> dict[str, Any]:
    reason = _REASONS.get(code, "InternalError")
    said = {"apiVersion": "v1", "kind": "Status", "metadata": {}, "status": "Failure", "code": code, "reason": reason}
    return {**said, "message": f"the test says {code}"}
