"""kopf's watches, which tell what happened and decide nothing.

kopf follows every kind that a pool depends on and keeps its watches alive; its handlers only pass on what they are
told. It runs on an event loop of its own, in a thread of its own: a kopf that ends cancels every task of its loop that
began after itself, and takes the process's signals where it can. One that ends is started again and counted.

What always holds: nothing is written to any object by kopf (no finalizer, no annotation, no Event), and what it tells
is a hint: whoever acts on it compares with a fresh list every few minutes, for a watch may miss what was deleted
while it was away.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import kopf

from fairpool_operator.cluster import Kind, credentials
from fairpool_operator.view import Object

log = logging.getLogger(__name__)

_AGAIN_AFTER: Final = 2.0
"""Seconds until a kopf that ended is started again."""
_SERVER_SECONDS: Final = 240
_CLIENT_SECONDS: Final = 270.0
"""How long one watch may last, by the server's clock and by ours."""
_AGAIN_IF_AWAY: Final = (1.0, 1.0, 2.0, *[3.0] * 17)
"""Seconds from one try to the next while the API server is away: few, for edits wait; after the last one kopf ends."""
_STOP_SECONDS: Final = 10.0
_IDENTITY: Final = "fairpool-operator"
"""What kopf calls itself among its peers, of which there are none."""


@dataclass(frozen=True, slots=True)
class Followed:
    """A kind that is followed, and the labels by which the server picks what is told of it."""

    kind: Kind
    labels: str | None = None


Heard = Callable[[Kind, str | None, Object], None]
"""Told of a kind, the object, and what happened: ADDED, MODIFIED, DELETED, or None: a watch began, and found it."""


class Watches:
    """The watches of some kinds in some namespaces, or in all. To be made on the loop where `heard` is called."""

    def __init__(
        self, followed: Sequence[Followed], heard: Heard, *, kubeconfig: Path | None, namespaces: Sequence[str] = ()
    ) -> None:
        self._followed = followed
        self._heard = heard
        self._kubeconfig = kubeconfig
        self._namespaces = tuple(namespaces)
        self._loop = asyncio.get_running_loop()
        self.restarts = 0

    async def run(self, restarted: Callable[[], None]) -> None:
        """Follow until cancelled; `restarted` is called whenever something may have been missed."""
        while True:
            await self._once()
            self.restarts += 1
            restarted()
            await asyncio.sleep(_AGAIN_AFTER)

    async def _once(self) -> None:
        stop, ended = threading.Event(), asyncio.Event()

        def follow() -> None:
            try:
                asyncio.run(self._operator(stop))
            except Exception:
                log.exception("kopf ended; it is started again")
            finally:
                self._loop.call_soon_threadsafe(ended.set)

        thread = threading.Thread(target=follow, name="kopf", daemon=True)
        thread.start()
        try:
            await ended.wait()
        finally:
            stop.set()
            await asyncio.to_thread(thread.join, _STOP_SECONDS)

    async def _operator(self, stop: threading.Event) -> None:
        scope: dict[str, Any] = {"namespaces": self._namespaces} if self._namespaces else {"clusterwide": True}
        # Without one kopf looks for names of the user and the host, and ends where the user has none, as in a pod.
        scope["identity"] = _IDENTITY
        try:
            await kopf.operator(registry=self._registry(), settings=self._settings(), stop_flag=stop, **scope)
            log.log(logging.DEBUG if stop.is_set() else logging.WARNING, "kopf ended")
        finally:
            stop.set()  # A thread of this loop waits for it, and the loop does not end before its threads.

    def _settings(self) -> kopf.OperatorSettings:
        settings = kopf.OperatorSettings()
        settings.peering.standalone = True
        settings.scanning.disabled = True
        settings.posting.enabled = False
        settings.watching.server_timeout = _SERVER_SECONDS
        settings.watching.client_timeout = _CLIENT_SECONDS
        settings.watching.connect_timeout = 5.0
        settings.networking.request_timeout = 60.0
        settings.networking.error_backoffs = _AGAIN_IF_AWAY
        for each in self._followed:
            if each.labels is not None:
                settings.watching.label_selectors[_selector(each.kind)] = each.labels
        return settings

    def _registry(self) -> kopf.OperatorRegistry:
        registry = kopf.OperatorRegistry()

        @kopf.on.login(registry=registry)
        async def login(**_: Any) -> kopf.ConnectionInfo:
            found = await credentials(self._kubeconfig)
            return kopf.ConnectionInfo(
                server=found.server,
                ca_path=found.ca_path,
                token=found.token,
                certificate_path=found.certificate_path,
                private_key_path=found.key_path,
            )

        for each in self._followed:
            self._follow(registry, each.kind)
        return registry

    def _follow(self, registry: kopf.OperatorRegistry, kind: Kind) -> None:
        @kopf.on.event(*_selector(kind), registry=registry, id=kind.plural)
        async def pass_on(event: Any, **_: Any) -> None:
            self._loop.call_soon_threadsafe(self._heard, kind, event["type"], dict(event["object"]))


def _selector(kind: Kind) -> tuple[str, str, str]:
    group, _, version = kind.api_version.rpartition("/")
    return group, version, kind.plural
