"""What all objects of a pool have in common: their name, labels and owner.

What always holds: they go with the pool, by their owner reference; none of the pool's own labels and annotations is
copied to them, for tools that manage the pool would take them for their own.
"""

from __future__ import annotations

from typing import Any, Final

from fairpool_operator.resources import FairPool
from fairpool_operator.resources.part import Part
from fairpool_operator.view import GATEWAY, Object, object_name

PORT: Final = 8080
ADMIN_PORT: Final = 8081
"""Where the gateway's pod listens."""

SERVING: Final = "http"
ADMIN: Final = "admin"
"""How these ports are called."""


def labels_of(pool: FairPool) -> dict[str, str]:
    """The labels of all that belongs to the pool."""
    return {
        "app.kubernetes.io/name": GATEWAY,
        "app.kubernetes.io/instance": pool.metadata.name,
        "app.kubernetes.io/managed-by": "fairpool-operator",
        "fairpool.dev/pool": pool.metadata.name,
    }


def chosen_by(pool: FairPool) -> dict[str, str]:
    """The labels by which the pool's gateway is chosen; a Deployment can never change them."""
    return {"app.kubernetes.io/name": GATEWAY, "fairpool.dev/pool": pool.metadata.name}


def named(api_version: str, kind: str, pool: FairPool, **fields: Any) -> Object:
    """An object of the pool."""
    return {
        "apiVersion": api_version,
        "kind": kind,
        "metadata": {
            "name": object_name(kind, pool.metadata.name),
            "namespace": pool.metadata.namespace,
            "labels": labels_of(pool),
            "ownerReferences": [
                {
                    "apiVersion": "fairpool.dev/v1alpha1",
                    "kind": "FairPool",
                    "name": pool.metadata.name,
                    "uid": pool.metadata.uid,
                    "controller": True,
                }
            ],
        },
        **fields,
    }


def url_of(pool: FairPool) -> str:
    """Where tenants find the pool: the base URL of their clients."""
    scheme, usual = ("https", 443) if pool.spec.gateway.tls else ("http", 80)
    port = pool.spec.gateway.port
    host = f"{object_name('Service', pool.metadata.name)}.{pool.metadata.namespace}.svc"
    return f"{scheme}://{host}{'' if port == usual else f':{port}'}/v1"


def plain(part: Part) -> dict[str, Any]:
    """A part as Kubernetes has it, with what it says and no more."""
    said: dict[str, Any] = part.model_dump(mode="json", exclude_none=True, exclude_defaults=True)
    return said
