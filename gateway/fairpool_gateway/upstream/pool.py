"""Idle connections, kept by target for the next exchange.

The one that was used last goes out first, so that under light load the others grow old and expire, and every
operation is O(1) however many are idle. A target without idle connections costs no memory.
"""

from __future__ import annotations

from typing import Generic, TypeVar

from fairpool_gateway.upstream.target import Target

C = TypeVar("C")


class Pool(Generic[C]):
    """At most `limit` idle connections per target."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        # Dicts keep order: `popitem` takes the newest, and an expired one is deleted wherever it stands.
        self._idle: dict[Target, dict[C, None]] = {}

    def take(self, target: Target) -> C | None:
        """The idle connection that was used last, or None."""
        idle = self._idle.get(target)
        if idle is None:
            return None
        connection, _ = idle.popitem()
        if not idle:
            del self._idle[target]
        return connection

    def put(self, target: Target, connection: C) -> bool:
        """Keep an idle connection; False if there is no place for it."""
        idle = self._idle.get(target)
        if idle is None:
            if self._limit < 1:
                return False
            self._idle[target] = {connection: None}
            return True
        if len(idle) >= self._limit:
            return False
        idle[connection] = None
        return True

    def discard(self, target: Target, connection: C) -> None:
        """Forget a connection, idle or not."""
        idle = self._idle.get(target)
        if idle is not None and connection in idle:
            del idle[connection]
            if not idle:
                del self._idle[target]
