"""What is read of Kubernetes' objects, and the source that they are read from.

Only the fields that matter are decoded. What always holds: an answer that is not of this form raises
`msgspec.DecodeError`, which every reader of one takes for a fault of the server.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

import msgspec

T = TypeVar("T", bound="Thing")


class Metadata(msgspec.Struct, rename="camel", frozen=True):
    """Which object it is, and whether it is about to go."""

    name: str
    uid: str = ""
    resource_version: str = ""
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    labels: dict[str, str] | None = None


class Thing(msgspec.Struct, rename="camel", frozen=True):
    """What every object has."""

    metadata: Metadata


class ListMetadata(msgspec.Struct, rename="camel", frozen=True):
    """As of when a list is, and where it goes on."""

    resource_version: str = ""
    continue_: str | None = msgspec.field(default=None, name="continue")


class ListOf(msgspec.Struct, Generic[T], frozen=True):
    """A page of a list."""

    metadata: ListMetadata
    items: list[T] | None = None


class Event(msgspec.Struct, frozen=True):
    """A line of a watch; what the object is depends on the type."""

    type: str
    object: msgspec.Raw


class Status(msgspec.Struct, frozen=True):
    """Why the server did not do what was asked."""

    message: str | None = None
    code: int | None = None


@dataclass(frozen=True, slots=True)
class Change(Generic[T]):
    """An object as it is now, or as it was before it was `gone`."""

    object: T
    gone: bool = False


@dataclass(frozen=True, slots=True)
class Resource(Generic[T]):
    """Some objects of one kind: where the API has them, which of them, and what is read of each."""

    path: str
    query: dict[str, str]
    kind: type[T]


class Source(Protocol[T]):
    """Where objects of one kind can be listed and watched. Whatever goes wrong raises `ClusterError`."""

    async def list(self) -> tuple[list[T], str]:
        """All there are, from no cache, and the version of the list."""

    def watch(self, version: str, seconds: float) -> AsyncGenerator[Change[T] | None, Any]:
        """What changes from that version on, for at most so long; None first, once the server has agreed."""
