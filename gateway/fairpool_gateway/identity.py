"""Whose request is this: from the credential in its headers to the tenant.

A pool asks for keys, or it takes the word of a proxy, or it takes everybody for one tenant. Nothing else that a request
holds ever chooses its tenant.

A key is looked up by its SHA-256 digest, the only form in which the configuration knows it, and is kept nowhere: not
in a cache, not in a message. Clients differ in the header they send a key in, and some send more than one. The rule
for several: those that are known must all be one tenant's, and those that are not, or that have ended, are passed
over, for a client may have to fill in a field that nobody reads. So the order of the headers never matters, and no key
that is not a tenant's ever helps or harms.

A proxy has found out by means of its own who sends a request, and names the tenant in a header. That header counts
only beside the proxy's own credential, which is looked up like a key; and only if it is there once, for a proxy that
adds to what its clients send, instead of replacing it, would let them choose.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from typing import Final

from fairpool_gateway.config import (
    ANONYMOUS,
    PROXY_CREDENTIAL_HEADER,
    AuthenticationSettings,
    KeySettings,
    PoolConfig,
    may_name_a_tenant,
)
from fairpool_gateway.errors import Forbidden, Refused, TenantSuspended, Unauthenticated

Headers = Iterable[tuple[bytes, bytes]]
"""Names in lower case, as ASGI gives them."""

_KEY_HEADERS: Final = frozenset({b"x-api-key", b"api-key"})
_BEARER: Final = b"bearer "
_HOW_TO: Final = "Send it as 'Authorization: Bearer KEY', or in the header x-api-key or api-key."


@dataclass(slots=True)
class Key:
    """One key, as it may be shown; times in seconds since 1970.

    Attributes:
        tenant: whose it is.
        name: what people call it, or the beginning of its digest.
        not_after: when it ends.
        last_used: when it was last sent and good, or None if that was not since this gateway began.
    """

    tenant: str
    name: str
    not_after: float
    last_used: float | None = None


class Directory:
    """The tenants of one configuration, by what their requests show.

    Args:
        config: the pool.
        before: the directory that this one replaces, so that it is still known when each key was last used.

    Attributes:
        keys: every key, by its digest.
    """

    def __init__(self, config: PoolConfig, before: Directory | None = None) -> None:
        self._pool = config.pool
        self._suspended = config.suspended()
        self.keys: dict[bytes, Key] = _keys(config, {} if before is None else before.keys)
        self._proxy = _Proxy(config) if config.authentication.type == "TrustedHeader" else None
        self._anonymous = config.authentication.type == "Anonymous"

    def identify(self, headers: Headers, now: float) -> str:
        """The tenant whose request has these headers, `now` seconds after 1970 began.

        Raises:
            Unauthenticated: they hold no credential, none that is good here, or keys of several tenants.
            Forbidden: the proxy names a tenant that may not use this pool.
            TenantSuspended: this tenant may not use it for now.
        """
        if self._proxy is not None:
            tenant = self._proxy.tenant_of(headers)
        elif self._anonymous:
            tenant = ANONYMOUS
        else:
            tenant = self._owner(headers, now)
        if tenant in self._suspended:
            raise TenantSuspended.of(tenant)
        return tenant

    def _owner(self, headers: Headers, now: float) -> str:
        found: Key | None = None
        ended: Key | None = None
        sent = False
        for name, value in headers:
            if name == b"authorization":
                if value[:7].lower() != _BEARER:
                    continue
                secret = value[7:].strip()
            elif name in _KEY_HEADERS:
                secret = value.strip()
            else:
                continue
            sent = sent or bool(secret)
            key = self.keys.get(sha256(secret).digest())
            if key is None:
                continue
            if now > key.not_after:
                ended = key
                continue
            if found is not None and found.tenant != key.tenant:
                raise Unauthenticated("The request holds API keys of different tenants. Send one key only.")
            key.last_used = now
            found = key
        if found is None:
            raise self._refusal(ended, sent=sent)
        return found.tenant

    def _refusal(self, ended: Key | None, *, sent: bool) -> Refused:
        if ended is not None:
            when = datetime.fromtimestamp(ended.not_after, UTC)
            return Unauthenticated(f"This API key ended at {when:%Y-%m-%d %H:%M:%S} UTC. Send one that is still good.")
        if sent:
            return Unauthenticated(
                f"This API key belongs to no tenant of pool {self._pool}. Check that it is complete."
            )
        return Unauthenticated(f"An API key is needed for pool {self._pool}. {_HOW_TO}")


class _Proxy:
    """The proxy whose word a pool takes, and for whom it may speak."""

    def __init__(self, config: PoolConfig) -> None:
        settings: AuthenticationSettings = config.authentication
        assert settings.header is not None
        assert settings.proxy_credential is not None
        self._pool = config.pool
        self._header = settings.header.encode()
        self._credential_header = PROXY_CREDENTIAL_HEADER.encode()
        self._credentials = {_digest(each) for each in settings.proxy_credential.digests()}
        self._listed = {tenant.name for tenant in config.tenants}
        self._admits_unknown = settings.unknown_tenants == "Admit"

    def tenant_of(self, headers: Headers) -> str:
        """The tenant that the proxy names."""
        named: list[bytes] = []
        trusted = sent = False
        for name, value in headers:
            if name == self._header:
                named.append(value.strip())
            elif name == self._credential_header:
                sent = True
                trusted = trusted or sha256(value.strip()).digest() in self._credentials
        if not trusted:
            raise self._refusal(sent=sent)
        return self._named(named)

    def _named(self, named: list[bytes]) -> str:
        header = self._header.decode()
        if not any(named):
            raise Unauthenticated(f"The proxy of pool {self._pool} named no tenant in the header {header}.")
        if len(named) > 1:
            raise Unauthenticated(
                f"The header {header} is there more than once. The proxy has to replace what its clients send."
            )
        tenant = named[0].decode("latin-1")
        if tenant in self._listed:
            return tenant
        if not may_name_a_tenant(tenant):
            raise Forbidden(f"What the proxy sent in the header {header} cannot be the name of a tenant.")
        if not self._admits_unknown:
            raise Forbidden(f"Tenant {tenant} may not use pool {self._pool}. Ask those who run it to list this tenant.")
        return tenant

    def _refusal(self, *, sent: bool) -> Refused:
        if sent:
            return Unauthenticated(
                f"The credential in {self._credential_header.decode()} is not that of the proxy of pool {self._pool}."
            )
        return Unauthenticated(f"Pool {self._pool} takes requests from its own proxy only. Send yours there.")


def _keys(config: PoolConfig, before: dict[bytes, Key]) -> dict[bytes, Key]:
    """Every key by its digest; one that a tenant lists twice is good for the longer of both times."""
    keys: dict[bytes, Key] = {}
    for tenant in config.tenants:
        for settings in tenant.keys:
            digest = _digest(settings.digest)
            key = _key(tenant.name, settings)
            if digest in keys and keys[digest].not_after >= key.not_after:
                continue
            if digest in before and before[digest].tenant == tenant.name:
                key.last_used = before[digest].last_used
            keys[digest] = key
    return keys


def _key(tenant: str, settings: KeySettings) -> Key:
    return Key(
        tenant,
        settings.name or f"{settings.digest[:15]}...",
        math.inf if settings.not_after is None else settings.not_after.timestamp(),
    )


def _digest(written: str) -> bytes:
    return bytes.fromhex(written.removeprefix("sha256:"))
