"""Speaks to the API server: lists in pages, watches, and the status of one object.

What always holds: nothing waits for ever. A list and a report have a time of their own; a watch ends when it is due,
even if the server falls silent or keeps the connection for itself. Every failure is a `ClusterError`, in words that
hold no credential.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from pathlib import Path
from typing import Any, Final, Generic, TypeVar

import aiohttp
import msgspec
from kubernetes.aio.client import ApiClient, Configuration
from kubernetes.aio.config import ConfigException, load_incluster_config, load_kube_config
from yaml import YAMLError

from fairpool_gateway.cluster.objects import Change, Event, ListOf, Resource, Status, T
from fairpool_gateway.errors import CannotStart, ClusterError, ClusterExpired

A = TypeVar("A")

_PAGE: Final = 200
_SECONDS: Final = 10.0
"""For one answer, or for the beginning of a watch."""
_GRACE: Final = 1.0
"""For how long after its time the server may take to end a watch."""
_LONGEST_LINE: Final = 16 << 20
_TROUBLE: Final = (aiohttp.ClientError, OSError, TimeoutError, ConfigException)


async def connect(kubeconfig: Path | None) -> Cluster:
    """The API with the credentials of a file, or those that a pod has.

    Raises:
        CannotStart: there are none, or they cannot be read.
    """
    configuration = Configuration()
    try:
        if kubeconfig is None:
            load_incluster_config(client_configuration=configuration)  # type: ignore[no-untyped-call]  # the library's
        else:
            await load_kube_config(  # type: ignore[no-untyped-call]  # the library's
                config_file=str(kubeconfig), client_configuration=configuration
            )
    except (ConfigException, OSError) as problem:
        where = "this is no pod, and no --kubeconfig is given" if kubeconfig is None else f"{kubeconfig} cannot be used"
        raise CannotStart(f"{where}: {problem}") from problem
    except (YAMLError, AttributeError, LookupError, TypeError, ValueError):
        # Without their words, which would repeat what is in the file.
        raise CannotStart(f"{kubeconfig} cannot be used: it is no kubeconfig") from None
    return Cluster(ApiClient(configuration))


class Cluster:
    """One API server. `seconds`: how long an answer, or the beginning of a watch, may take."""

    def __init__(self, client: ApiClient, *, seconds: float = _SECONDS) -> None:
        self._client = client
        self._seconds = seconds
        client.user_agent = "fairpool-gateway"

    async def aclose(self) -> None:
        """Close every connection."""
        await self._client.close()  # type: ignore[no-untyped-call]  # the library's

    def source(self, resource: Resource[T]) -> ClusterSource[T]:
        """Where these objects can be listed and watched."""
        return ClusterSource(self, resource)

    async def get(self, path: str) -> dict[str, Any]:
        """One object."""
        return _decoded(await self.read("GET", path, {}), dict[str, Any])

    async def apply(self, path: str, body: Mapping[str, Any], manager: str) -> None:
        """Make these fields what they are here, in the name of `manager`."""
        query = {"fieldManager": manager, "force": "true"}
        await self.read("PATCH", path, query, dict(body), content="application/apply-patch+yaml")

    async def read(
        self, method: str, path: str, query: Mapping[str, str], body: dict[str, Any] | None = None, content: str = ""
    ) -> bytes:
        """A whole answer."""
        timeout = aiohttp.ClientTimeout(total=self._seconds)
        async with self.answer(method, path, query, timeout, body, content) as answer:
            return await answer.read()

    @contextlib.asynccontextmanager
    async def answer(
        self,
        method: str,
        path: str,
        query: Mapping[str, str],
        within: aiohttp.ClientTimeout,
        body: dict[str, Any] | None = None,
        content: str = "",
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """An answer that is good, to be read; closed at the end."""
        try:
            method, url, headers, sent, _ = await self._client.param_serialize(
                method,
                path,
                query_params=list(query.items()),
                header_params={"Accept": "application/json", "Content-Type": content or "application/json"},
                body=body,
                auth_settings=["BearerToken"],
            )
            async with asyncio.timeout(self._seconds):
                called = await self._client.call_api(method, url, headers, sent, _request_timeout=within)
            response: aiohttp.ClientResponse = called.response
            try:
                if response.status >= 300:
                    async with asyncio.timeout(self._seconds):
                        raise _refused(response.status, await response.content.read(1 << 16))
                yield response
            finally:
                response.close()
        except _TROUBLE as problem:
            raise ClusterError(f"the API server cannot be reached: {problem or type(problem).__name__}") from problem


class ClusterSource(Generic[T]):
    """Some objects of a cluster."""

    def __init__(self, cluster: Cluster, resource: Resource[T]) -> None:
        self._cluster = cluster
        self._resource = resource

    async def list(self) -> tuple[list[T], str]:
        """All there are, from no cache, and the version of the list."""
        of = self._resource
        found: list[T] = []
        query = {**of.query, "limit": str(_PAGE)}
        while True:
            page = _decoded(await self._cluster.read("GET", of.path, query), ListOf[of.kind])  # type: ignore[name-defined]  # mypy takes no value for a type
            found += page.items or ()
            if not page.metadata.continue_:
                return found, page.metadata.resource_version
            query["continue"] = page.metadata.continue_

    async def watch(self, version: str, seconds: float) -> AsyncGenerator[Change[T] | None, None]:
        """What changes from that version on, for at most so long; None first, once the server has agreed."""
        of = self._resource
        query = {
            **of.query,
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": version,
            "timeoutSeconds": str(max(1, round(seconds))),
        }
        until = asyncio.get_running_loop().time() + seconds + _GRACE
        timeout = aiohttp.ClientTimeout(total=None)
        async with self._cluster.answer("GET", of.path, query, timeout) as answer:
            yield None
            async for line in _lines(answer, until):
                event = _decoded(line, Event)
                match event.type:
                    case "ADDED" | "MODIFIED":
                        yield Change(_decoded(event.object, of.kind))
                    case "DELETED":
                        yield Change(_decoded(event.object, of.kind), gone=True)
                    case "ERROR":
                        status = _decoded(event.object, Status)
                        raise _error(status.code or 500, status.message or "the watch failed")


async def _lines(answer: aiohttp.ClientResponse, until: float) -> AsyncGenerator[bytes, None]:
    """The lines of an answer until its end, or until that moment."""
    loop = asyncio.get_running_loop()
    rest = b""
    while (left := until - loop.time()) > 0:
        try:
            async with asyncio.timeout(left):
                piece = await answer.content.readany()
        except TimeoutError:
            return
        if not piece:
            return
        *lines, rest = (rest + piece).split(b"\n")
        for line in lines:
            if line.strip():
                yield line
        if len(rest) > _LONGEST_LINE:
            raise ClusterError("the API server sends an event without an end")


def _decoded(text: bytes | msgspec.Raw, kind: type[A]) -> A:
    try:
        return msgspec.json.decode(text, type=kind)
    except (msgspec.DecodeError, RecursionError) as problem:
        raise ClusterError(f"the API server answers with something else than it should: {problem}") from problem


def _refused(code: int, text: bytes) -> ClusterError:
    try:
        message = msgspec.json.decode(text, type=Status).message
    except (msgspec.DecodeError, RecursionError):
        message = None
    return _error(code, message or f"it answers {code}")


def _error(code: int, message: str) -> ClusterError:
    if code == 410:
        return ClusterExpired(message)
    return ClusterError(f"the API server refuses it ({code}): {message[:300]}")
