"""Pods as the API server would have them, and as the gateway reads them."""

from collections.abc import Sequence
from typing import Any

import msgspec

from fairpool_gateway.config import DiscoverySettings
from fairpool_gateway.discovery import Pod

GPU = "nvidia.com/gpu"


def container(
    gpus: int | str | None = 1, *, ports: dict[str, int] | None = None, sidecar: bool = False
) -> dict[str, Any]:
    """A container, or an init container: one that runs on if it is a `sidecar`."""
    return {
        "name": "engine",
        "image": "engine",
        "ports": [{"name": name, "containerPort": number} for name, number in (ports or {}).items()],
        "resources": {} if gpus is None else {"limits": {GPU: str(gpus)}, "requests": {GPU: str(gpus)}},
        **({"restartPolicy": "Always"} if sidecar else {}),
    }


def pod_document(
    name: str = "vllm-0",
    *,
    ip: str | None = "127.0.0.1",
    port: int = 8000,
    ports: dict[str, int] | None = None,
    uid: str | None = None,
    ready: bool = True,
    phase: str = "Running",
    gpus: int | str | None = 1,
    init: Sequence[dict[str, Any]] = (),
    claims: int = 0,
    created: str = "2026-01-01T00:00:00Z",
    leaving: bool = False,
    host_network: bool = False,
    labels: dict[str, str] | None = None,
) -> dict[str, Any]:
    """A pod whose container names its port `http`, or its `ports` as they say; None leaves a thing out."""
    document: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "uid": uid or f"uid-of-{name}",
            "creationTimestamp": created,
            "labels": {"app": "vllm", **(labels or {})},
        },
        "spec": {
            "containers": [container(gpus, ports={"http": port} if ports is None else ports)],
            "initContainers": list(init),
        },
        "status": {
            "phase": phase,
            "conditions": [{"type": "Ready", "status": "True" if ready else "False"}],
        },
    }
    if ip is not None:
        document["status"]["podIP"] = ip
    if claims:
        document["spec"]["resourceClaims"] = [{"name": f"claim-{number}"} for number in range(claims)]
    if host_network:
        document["spec"]["hostNetwork"] = True
    if leaving:
        document["metadata"]["deletionTimestamp"] = "2026-01-02T00:00:00Z"
    return document


def pod(*arguments: Any, **fields: Any) -> Pod:
    """The same, as the gateway reads it."""
    return msgspec.json.decode(msgspec.json.encode(pod_document(*arguments, **fields)), type=Pod)


def discovery(**fields: Any) -> DiscoverySettings:
    """Which pods are endpoints: those of `app: vllm`, at port 8000."""
    return DiscoverySettings.model_validate(
        {"selector": {"matchLabels": {"app": "vllm"}}, "targetPorts": [{"number": 8000}], **fields}
    )
