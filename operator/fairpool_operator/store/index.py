"""Which names belong to a key, kept as they come and go."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
N = TypeVar("N", bound=Hashable)


class Index(Generic[K, N]):
    """From keys to the names beneath them; a key without names takes no room."""

    def __init__(self) -> None:
        self._names: dict[K, set[N]] = {}

    def move(self, name: N, before: Iterable[K], after: Iterable[K]) -> None:
        """A name belongs to other keys now."""
        before, after = frozenset(before), frozenset(after)
        for key in before - after:
            names = self._names[key]
            names.discard(name)
            if not names:
                del self._names[key]
        for key in after - before:
            self._names.setdefault(key, set()).add(name)

    def of(self, key: K) -> frozenset[N]:
        """The names beneath a key."""
        return frozenset(self._names.get(key, ()))

    def keys(self) -> frozenset[K]:
        """The keys that have names."""
        return frozenset(self._names)
