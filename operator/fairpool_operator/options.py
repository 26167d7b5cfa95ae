"""How one operator process is run, apart from all that runs it, which takes a second to load."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

PullPolicy = Literal["Always", "IfNotPresent", "Never"]


@dataclass(frozen=True, slots=True)
class Options:
    """What the command line says.

    Attributes:
        gateway_image: what gateways run.
        own_namespace: where the Lease is.
        identity: this process, in the Lease.
        namespaces: where to look; none: everywhere.
        image_pull_policy: when nodes fetch the image; None: as Kubernetes does.
        kubeconfig: how to reach the API; None: as a pod does.
        host: where health and metrics are.
        port: where on that host; 0: chosen by the kernel.
        lease_seconds: after which silence another takes over.
        list_seconds: how often all is listed afresh.
        workers: how many pools are looked at at once.
    """

    gateway_image: str
    own_namespace: str
    identity: str
    namespaces: tuple[str, ...]
    image_pull_policy: PullPolicy | None
    kubeconfig: Path | None
    host: str
    port: int
    lease_seconds: float
    list_seconds: float
    workers: int
