"""Secrets as far as anything is decided by them, so that no value of one is ever kept.

The label `fairpool.dev/keys` is the consent of whoever may write a Secret to its use here, and says for what: tenants'
keys, a pool's configuration, the engines' credential and authorities, or the gateway's certificate. What always holds:
of a value that is a key only its digest is kept, of any other nothing but whether it could serve its purpose.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

LABEL: Final = "fairpool.dev/keys"
KEYS: Final = "true"
CONFIG: Final = "config"
ENGINE: Final = "engine"
TLS: Final = "tls"

_FIT_FOR_A_HEADER: Final = re.compile(rb"[\x21-\x7e]{1,8192}")
_BLOCK: Final = re.compile(rb"-----BEGIN ([A-Z0-9 ]{1,40})-----([A-Za-z0-9+/=\s]+)-----END \1-----")
"""One block of PEM; whatever stands between blocks is comment (RFC 7468, section 5.2)."""
_COPY: Final = "kubectl.kubernetes.io/last-applied-configuration"
"""An annotation in which kubectl keeps a second copy of everything, values too."""


@dataclass(frozen=True, slots=True)
class Value:
    """What is known of one value, space around it left out.

    Attributes:
        digest: its own, of a key only.
        is_empty: whether there is none.
        fits_a_header: whether it can be sent in one.
        blocks: what its blocks of PEM say that they are, such as CERTIFICATE.
    """

    digest: str | None
    is_empty: bool
    fits_a_header: bool
    blocks: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Secret:
    """One Secret: for what it may be used, and what is known of each of its values."""

    namespace: str
    name: str
    uid: str
    use: str
    values: Mapping[str, Value]


def read_secret(resource: Mapping[str, Any]) -> Secret:
    """What is to be known of a Secret."""
    metadata = resource["metadata"]
    use = (metadata.get("labels") or {}).get(LABEL, "")
    data: Mapping[str, str] = resource.get("data") or {}
    return Secret(
        metadata["namespace"],
        metadata["name"],
        metadata["uid"],
        use,
        {key: _value(_decoded(value), is_key=use == KEYS) for key, value in sorted(data.items())},
    )


def hashed(resource: Mapping[str, Any]) -> dict[str, Any]:
    """A Secret with the digest of every value in its place, so that two can be compared."""
    metadata = dict(resource.get("metadata") or {})
    if annotations := metadata.get("annotations"):
        metadata["annotations"] = {name: value for name, value in annotations.items() if name != _COPY}
    data: Mapping[str, str] = resource.get("data") or {}
    digests = {key: _digest(_decoded(value)) for key, value in data.items()}
    rest = {name: value for name, value in resource.items() if name != "stringData"}
    return {**rest, "metadata": metadata, "data": digests}


def _value(value: bytes, *, is_key: bool) -> Value:
    value = value.strip()
    return Value(
        digest=_digest(value) if is_key else None,
        is_empty=not value,
        fits_a_header=bool(_FIT_FOR_A_HEADER.fullmatch(value)),
        blocks=frozenset(label.decode() for label, text in _BLOCK.findall(value) if _is_base64(text)),
    )


def _is_base64(text: bytes) -> bool:
    try:
        return bool(base64.b64decode(b"".join(text.split()), validate=True))
    except (binascii.Error, ValueError):
        return False


def _decoded(value: str | None) -> bytes:
    try:
        return base64.b64decode(value or "")
    except (binascii.Error, ValueError):
        return b""


def _digest(value: bytes) -> str:
    return "sha256:" + hashlib.sha256(value).hexdigest()
