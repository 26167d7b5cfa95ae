"""Follows the pods that a selector chooses; what becomes of them is decided elsewhere."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterable

from fairpool_gateway.cluster import Mirror, Resource, Source
from fairpool_gateway.config import SelectorSettings
from fairpool_gateway.discovery.pods import Pod
from fairpool_gateway.discovery.selecting import query_of


class PodFollower:
    """The pods of one namespace, from each `follow` on, until it is closed.

    Args:
        source: makes the source of some pods.
        namespace: where they are.
    """

    def __init__(self, source: Callable[[Resource[Pod]], Source[Pod]], namespace: str) -> None:
        self._source = source
        self._path = f"/api/v1/namespaces/{namespace}/pods"
        self._selector: SelectorSettings | None = None
        self._mirror: Mirror[Pod] | None = None
        self._task: asyncio.Task[None] | None = None

    @property
    def problem(self) -> str | None:
        """Why what was seen last may not be true any more, if so."""
        return None if self._mirror is None else self._mirror.problem

    @property
    def unseen(self) -> str | None:
        """Why nothing has been seen yet of what is to be followed, if so."""
        return None if self._mirror is None or self._mirror.has_listed else self._mirror.problem

    def follow(self, selector: SelectorSettings | None, seen: Callable[[Iterable[Pod]], None]) -> None:
        """Follow these pods from now on, or none; those of before are told of until the first list of these."""
        if selector == self._selector:
            return
        self._selector = selector
        if self._task is not None:
            self._task.cancel()
        self._mirror = self._task = None
        if selector is not None:
            pods = Resource(self._path, {"labelSelector": query_of(selector)}, Pod)
            self._mirror = Mirror(self._source(pods), "pods", lambda found: seen(found.values()))
            self._task = asyncio.create_task(self._mirror.follow())

    async def aclose(self) -> None:
        """Follow none any more."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
