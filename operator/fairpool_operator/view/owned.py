"""The objects that the operator keeps for a pool, as they are there, and how they are called.

All of one pool have one name, so that they are found without a search and each kind is there once. What always holds:
an object says by its name alone which pool it could belong to; whether it does is decided by its owner reference.
They are held as compact JSON, for thousands of them are in memory at once and few are looked at.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from fairpool_operator.differences import MANAGER
from fairpool_operator.view.secrets import LABEL, hashed

Object = dict[str, Any]
"""A resource as the API has it."""

OWNED_KINDS: Final = ("ServiceAccount", "Role", "RoleBinding", "Secret", "Service", "NetworkPolicy", "Deployment")
"""In the order in which they are to be there."""

GATEWAY: Final = "fairpool-gateway"
"""What the gateway is called, in labels and as the manager of its own report."""

MANAGED: Final = ("app.kubernetes.io/managed-by", "fairpool-operator")
"""The label by which all but Secrets are listed and watched."""

_SUFFIXES: Final[Mapping[str, str]] = {"Secret": "-fairpool-config"}
_SUFFIX: Final = "-fairpool"


def object_name(kind: str, pool: str) -> str:
    """What the pool's object of this kind is called."""
    return pool + _SUFFIXES.get(kind, _SUFFIX)


def pool_of(kind: str, name: str) -> str | None:
    """The pool whose object of this kind has this name; None if no pool's has."""
    suffix = _SUFFIXES.get(kind, _SUFFIX)
    return name.removesuffix(suffix) if name.endswith(suffix) and name != suffix else None


@dataclass(frozen=True, slots=True)
class Owned:
    """One object that is there under the name that the pool's own would have.

    `is_followed`: lists and watches tell of it, by its labels. Of any other only whoever asks for it by name hears.
    """

    kind: str
    namespace: str
    name: str
    uid: str
    is_followed: bool
    text: bytes

    def object(self) -> Object:
        """The object; what no decision needs is left out, and Secrets are hashed."""
        decoded: Object = msgspec.json.decode(self.text)
        return decoded


def read_owned(kind: str, resource: Mapping[str, Any]) -> Owned:
    """An object that the API server sent."""
    kept = hashed(resource) if kind == "Secret" else dict(resource)
    metadata = dict(kept.get("metadata") or {})
    metadata["managedFields"] = [
        entry for entry in metadata.get("managedFields") or () if entry.get("manager") == MANAGER
    ]
    metadata.pop("resourceVersion", None)
    kept["metadata"] = metadata
    labels = metadata.get("labels") or {}
    is_followed = LABEL in labels if kind == "Secret" else labels.get(MANAGED[0]) == MANAGED[1]
    text = msgspec.json.encode(kept)
    return Owned(kind, metadata["namespace"], metadata["name"], metadata["uid"], is_followed, text)
