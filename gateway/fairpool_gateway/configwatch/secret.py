"""Follows the configuration in a Secret, as its operator writes it: gzipped JSON under one key.

What always holds: contents are judged in order, and of several that come faster than that the last. It is applied, or
refused and the last good one stays in force, and the same is true of a Secret that is gone. What cannot be seen (the
API server is away, or forbids it) changes nothing; `problem` says so. No message holds anything of what is in it but
what `config.load` says.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import zlib
from collections.abc import Callable, Mapping
from typing import Final

from fairpool_gateway.cluster import Mirror, Resource, Source, Thing
from fairpool_gateway.config import PoolConfig, load
from fairpool_gateway.errors import ConfigInvalid

KEY: Final = "config.json.gz"
_LONGEST: Final = 64 << 20
_GZIP: Final = zlib.MAX_WBITS | 16


class Secret(Thing, frozen=True):
    """A Secret."""

    data: dict[str, str] | None = None


class SecretFollower:
    """The configuration in one Secret.

    Args:
        source: makes the source of some Secrets.
        namespace: where it is.
        name: its name.
        applied: called with each configuration that differs from the one in force and with its hash, and with the one
            in force once the Secret holds it again after something was refused.
        refused: called with the reasons, once, when the content cannot be used or the Secret is not there.
        in_force: the hash of the configuration in force, if any.
    """

    def __init__(
        self,
        source: Callable[[Resource[Secret]], Source[Secret]],
        namespace: str,
        name: str,
        *,
        applied: Callable[[PoolConfig, str], None],
        refused: Callable[[ConfigInvalid], None],
        in_force: str | None = None,
    ) -> None:
        self.where = f"Secret {namespace}/{name}"
        self._name = name
        self._applied = applied
        self._refused = refused
        self._in_force = in_force
        self._refusing = False
        self._latest: bytes | str | None = None
        self._news = asyncio.Event()
        # By name, and saying so in the query, for that is all that its role allows.
        secret = Resource(f"/api/v1/namespaces/{namespace}/secrets", {"fieldSelector": f"metadata.name={name}"}, Secret)
        self._mirror = Mirror(source(secret), "the configuration", self._saw)

    @property
    def problem(self) -> str | None:
        """Why what was seen last may not be true any more, if so."""
        return self._mirror.problem

    async def follow(self) -> None:
        """Follow it until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._mirror.follow())
            tasks.create_task(self._judge_all())

    def _saw(self, secrets: Mapping[str, Secret]) -> None:
        content = content_of(secrets.get(self._name))
        if content != self._latest:
            self._latest = content
            self._news.set()

    async def _judge_all(self) -> None:
        while True:
            await self._news.wait()
            self._news.clear()
            try:
                # In a thread: with thousands of tenants it takes a while.
                config, digest = await asyncio.to_thread(_judged, self._latest, self.where)
            except ConfigInvalid as problem:
                self._refusing = True
                self._refused(problem)
                continue
            if digest != self._in_force or self._refusing:
                self._in_force = digest
                self._refusing = False
                self._applied(config, digest)


def content_of(secret: Secret | None) -> bytes | str:
    """The configuration's text as it is in a Secret, or why there is none."""
    if secret is None:
        return "there is no such Secret"
    packed = (secret.data or {}).get(KEY)
    if packed is None:
        return f"has no {KEY}"
    try:
        unpacking = zlib.decompressobj(_GZIP)
        text = unpacking.decompress(base64.b64decode(packed, validate=True), _LONGEST)
    except (ValueError, zlib.error):
        return f"its {KEY} is not gzipped"
    if not unpacking.eof:
        return f"its {KEY} is cut off, or larger than {_LONGEST >> 20} MiB"
    return text


def hash_of(text: bytes) -> str:
    """By which operator and gateway tell one another which configuration they mean."""
    return hashlib.sha256(text).hexdigest()[:16]


def _judged(content: bytes | str | None, where: str) -> tuple[PoolConfig, str]:
    if not isinstance(content, bytes):
        raise ConfigInvalid([f"{where}: {content}"])
    try:
        text = content.decode()
    except UnicodeDecodeError:
        raise ConfigInvalid([f"{where}: is not a text in UTF-8"]) from None
    return load(text, source=where, strict=False), hash_of(content)
