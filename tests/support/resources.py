"""Resources as the API server has them; each argument replaces what most tests do not care about."""

from __future__ import annotations

import base64
import itertools
from typing import Any

from support.config import digest_of

NAMESPACE = "inference"
SMALLEST = {"selector": {"matchLabels": {"app": "vllm"}}, "targetPorts": [{"number": 8000}]}
_versions = itertools.count(1000)


def pem(label: str, comment: str = "") -> str:
    """A block that says it is such, with something in it."""
    return f"{comment}\n-----BEGIN {label}-----\nTUlJ\nQg==\n-----END {label}-----\n"


def metadata(name: str, namespace: str | None = NAMESPACE, **fields: Any) -> dict[str, Any]:
    """What the server keeps of any resource; each call makes a newer version of it."""
    return {
        "name": name,
        **({} if namespace is None else {"namespace": namespace}),
        "uid": f"uid-of-{namespace}-{name}",
        "generation": 1,
        "creationTimestamp": "2026-01-01T00:00:00Z",
        "resourceVersion": str(next(_versions)),
        **fields,
    }


def fair_pool(name: str = "llama", *, meta: dict[str, Any] | None = None, status: Any = None, **spec: Any) -> Any:
    """A FairPool."""
    return {
        "apiVersion": "fairpool.dev/v1alpha1",
        "kind": "FairPool",
        "metadata": metadata(name, **(meta or {})),
        "spec": {"endpoints": SMALLEST, **spec},
        "status": status or {},
    }


def tenant_weight(
    name: str = "search",
    namespace: str = NAMESPACE,
    *,
    pool: str = "llama",
    meta: dict[str, Any] | None = None,
    status: Any = None,
    **spec: Any,
) -> Any:
    """A TenantWeight for a pool in `inference`, with a key of its own by digest."""
    return {
        "apiVersion": "fairpool.dev/v1alpha1",
        "kind": "TenantWeight",
        "metadata": metadata(name, namespace, **(meta or {})),
        "spec": {
            "poolRef": {"name": pool, "namespace": NAMESPACE},
            "apiKeys": [{"name": "first", "digest": digest_of(f"key-of-{namespace}-{name}")}],
            **spec,
        },
        "status": status or {},
    }


def secret(name: str, namespace: str = NAMESPACE, *, use: str | None = "true", **values: str | bytes) -> Any:
    """A Secret; `_` in the names of its keys stands for `-`."""
    encoded = {
        key.replace("_", "-"): base64.b64encode(value.encode() if isinstance(value, str) else value).decode()
        for key, value in values.items()
    }
    labels = {} if use is None else {"labels": {"fairpool.dev/keys": use}}
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": metadata(name, namespace, **labels),
        "data": encoded,
    }


def namespace(name: str, **labels: str) -> Any:
    """A Namespace."""
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata(name, None, labels=labels)}


def gateway_pod(name: str = "gateway-1", pool: str = "llama", *, ready: bool = True, **fields: Any) -> Any:
    """A pod of a pool's gateway."""
    labels = {"app.kubernetes.io/name": "fairpool-gateway", "fairpool.dev/pool": pool}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata(name, labels=labels, **fields),
        "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": str(ready)}]},
    }


def rolled_out(deployment: Any) -> dict[str, Any]:
    """What the Deployments' controller counts when all of one replica is as it should be."""
    counts = dict.fromkeys(("replicas", "updatedReplicas", "readyReplicas", "availableReplicas"), 1)
    return {"observedGeneration": deployment["metadata"].get("generation", 0), **counts}


def rolling_out(deployment: Any) -> dict[str, Any]:
    """What it counts while one pod is being replaced: the new one is there, and not ready."""
    return {**rolled_out(deployment), "replicas": 2, "unavailableReplicas": 1}
