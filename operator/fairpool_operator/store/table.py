"""Objects of one kind by name, as new as the newest that was told of them.

Lists and events arrive in any order: an event may be older than a list, a list older than the events that arrived while
it was read, and what a watch missed is in neither. What always holds: a list counts over whatever was told before it
was begun, so it also follows a cluster that was set back to an older state; else an older version never replaces a
newer one, and what was deleted never comes back but as another object, or as a newer version (an object also leaves a
watch when it loses its labels). What a list lacks is gone, unless it was told of after the list was begun, or would be
in no list, or is in another namespace than the one that was listed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Generic, NamedTuple, TypeVar

Name = tuple[str, str]
"""A namespace ("" for an object that is in none) and a name."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Change(Generic[T]):
    """What became of one name."""

    name: Name
    before: T | None
    after: T | None


@dataclass(frozen=True, slots=True)
class _Entry(Generic[T]):
    uid: str
    version: int
    told_at: int
    found: T


class _Gone(NamedTuple):
    namespace: str
    version: int
    told_at: int


_NEVER: Final = _Gone("", -1, -1)


class Table(Generic[T]):
    """One kind. `read` makes of an object what is kept of it, or None where it is of no interest.

    `is_listed` tells of what is kept whether a list would have it.
    """

    def __init__(
        self, read: Callable[[Mapping[str, Any]], T | None], is_listed: Callable[[T], bool] = lambda _: True
    ) -> None:
        self._read = read
        self._is_listed = is_listed
        self._entries: dict[Name, _Entry[T]] = {}
        self._gone: dict[str, _Gone] = {}
        self._gone_longer: dict[str, _Gone] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, name: Name) -> T | None:
        """What is known by this name."""
        entry = self._entries.get(name)
        return entry.found if entry else None

    def names(self) -> Iterable[Name]:
        """Every name that is known."""
        return self._entries.keys()

    def values(self) -> Iterator[T]:
        """Everything that is known."""
        return (entry.found for entry in self._entries.values())

    def put(self, resource: Mapping[str, Any], at: int, begun: int = -1) -> Iterator[Change[T]]:
        """An object is as `resource` says; told at a moment that only ever grows, in answer to what `begun` began."""
        name, uid, version = _identity(resource)
        known = self._entries.get(name)
        if known is not None and (known.uid, known.version) == (uid, version):
            self._entries[name] = _Entry(uid, version, at, known.found)
            return
        gone = self._gone.get(uid, self._gone_longer.get(uid, _NEVER))
        if version <= gone.version and gone.told_at > begun:
            return
        if known is not None and 0 <= version < known.version and known.told_at > begun:
            return
        found = self._read(resource)
        if found is None:
            self._entries.pop(name, None)
        else:
            self._entries[name] = _Entry(uid, version, at, found)
        before = known.found if known else None
        if before != found:
            yield Change(name, before, found)

    def remove(self, resource: Mapping[str, Any], at: int) -> Iterator[Change[T]]:
        """This very object is gone; told at a moment that only ever grows."""
        name, uid, version = _identity(resource)
        known = self._entries.get(name)
        self._bury(name, uid, version, at)
        if known is not None and known.uid == uid:
            yield self._forget(name, known, at)

    def replace(
        self, resources: Iterable[Mapping[str, Any]], begun: int, at: int, within: str | None = None
    ) -> Iterator[Change[T]]:
        """A list that was begun at a moment: all that there is, or all that is in one namespace."""
        listed = set()
        for resource in resources:
            name, uid, _ = _identity(resource)
            listed.add((name, uid))
            yield from self.put(resource, at, begun)
        vanished = [
            (name, entry)
            for name, entry in self._entries.items()
            if within in {None, name[0]}
            and (name, entry.uid) not in listed
            and entry.told_at <= begun
            and self._is_listed(entry.found)
        ]
        for name, entry in vanished:
            yield self._forget(name, entry, at)
        self._age(within)

    def _age(self, within: str | None) -> None:
        """What is gone is remembered until the second list that comes after: no event is late for so long."""
        if within is None:
            self._gone, self._gone_longer = {}, self._gone
            return
        young = {uid: gone for uid, gone in self._gone.items() if gone.namespace == within}
        self._gone = {uid: gone for uid, gone in self._gone.items() if gone.namespace != within}
        self._gone_longer = {uid: gone for uid, gone in self._gone_longer.items() if gone.namespace != within} | young

    def _forget(self, name: Name, entry: _Entry[T], at: int) -> Change[T]:
        del self._entries[name]
        self._bury(name, entry.uid, entry.version, at)
        return Change(name, entry.found, None)

    def _bury(self, name: Name, uid: str, version: int, at: int) -> None:
        self._gone[uid] = _Gone(name[0], max(version, self._gone.get(uid, _NEVER).version), at)


def _identity(resource: Mapping[str, Any]) -> tuple[Name, str, int]:
    metadata = resource["metadata"]
    version = metadata.get("resourceVersion") or ""
    return (
        (metadata.get("namespace") or "", metadata["name"]),
        metadata["uid"],
        int(version) if version.isdecimal() else -1,
    )
