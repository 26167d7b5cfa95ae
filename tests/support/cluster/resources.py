"""Keys as people write them, and what is said of resources."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any, Final

from support.cluster.client import Document

_MOST_CONDITIONS: Final = 16


def key_secret(namespace: str, name: str, value: str, *, label: str | None = "true", **more: str) -> Document:
    """A Secret with a key under `api-key`, labelled for its use."""
    labels = {} if label is None else {"fairpool.dev/keys": label}
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name, "namespace": namespace, "labels": labels},
        "stringData": {"api-key": value, **more},
    }


def by_secret(secret: str, name: str = "k", **more: Any) -> Document:
    """One of a TenantWeight's keys."""
    return {"name": name, "secretKeyRef": {"name": secret, "key": "api-key"}, **more}


def digest(key: str) -> str:
    """What a configuration holds of a key."""
    return "sha256:" + hashlib.sha256(key.encode()).hexdigest()


def condition(resource: Document, type_: str) -> Document:
    """One condition of a resource; an empty one if it has none."""
    found = resource.get("status", {}).get("conditions", ())
    return next((each for each in found if each["type"] == type_), {})


def says(type_: str, status: str, reason: str | None = None) -> Callable[[Document], bool]:
    """Whether a resource's condition is so, of its newest generation."""

    def holds(resource: Document) -> bool:
        found = condition(resource, type_)
        return (
            found.get("status") == status
            and (reason is None or found.get("reason") == reason)
            and found.get("observedGeneration") == resource["metadata"]["generation"]
        )

    return holds


def flood() -> list[Document]:
    """As many conditions of somebody else's as a status takes."""
    since = "2026-01-01T00:00:00Z"
    one = {"status": "True", "reason": "Flood", "message": "", "lastTransitionTime": since}
    return [{"type": f"Foreign{number}", **one} for number in range(_MOST_CONDITIONS)]
