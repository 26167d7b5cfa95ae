"""Whose request is this: from the credential in its headers to the tenant.

A key is looked up by its SHA-256 digest, the only form in which the configuration knows it, and is kept nowhere: not
in a cache, not in a message. Clients differ in the header they send a key in, and some send more than one. The rule
for several: those that are known must all be one tenant's, and those that are not are passed over, for a client may
have to fill in a field that nobody reads. So the order of the headers never matters, and no key that is not a
tenant's ever helps or harms.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256
from typing import Final

from fairpool_gateway.config import ANONYMOUS, PoolConfig
from fairpool_gateway.errors import Unauthenticated

_KEY_HEADERS: Final = frozenset({b"x-api-key", b"api-key"})
_BEARER: Final = b"bearer "
_HOW_TO: Final = "Send it as 'Authorization: Bearer KEY', or in the header x-api-key or api-key."


class Directory:
    """The tenants of one configuration, by their keys."""

    def __init__(self, config: PoolConfig) -> None:
        self._pool = config.pool
        self._anonymous = config.authentication.type == "Anonymous"
        self._owners = {
            bytes.fromhex(key.digest.removeprefix("sha256:")): tenant.name
            for tenant in config.tenants
            for key in tenant.keys
        }

    def identify(self, headers: Iterable[tuple[bytes, bytes]]) -> str:
        """The tenant whose request has these headers, their names in lower case as ASGI gives them.

        Raises:
            Unauthenticated: they hold no key, none that is known here, or keys of several tenants.
        """
        if self._anonymous:
            return ANONYMOUS
        found: str | None = None
        sent = False
        for name, value in headers:
            if name == b"authorization":
                if value[:7].lower() != _BEARER:
                    continue
                key = value[7:].strip()
            elif name in _KEY_HEADERS:
                key = value.strip()
            else:
                continue
            sent = sent or bool(key)
            owner = self._owners.get(sha256(key).digest())
            if owner is None:
                continue
            if found is not None and found != owner:
                raise Unauthenticated("The request holds API keys of different tenants. Send one key only.")
            found = owner
        if found is None:
            raise self._refusal(sent=sent)
        return found

    def _refusal(self, *, sent: bool) -> Unauthenticated:
        if sent:
            return Unauthenticated(
                f"This API key belongs to no tenant of pool {self._pool}. Check that it is complete."
            )
        return Unauthenticated(f"An API key is needed for pool {self._pool}. {_HOW_TO}")
