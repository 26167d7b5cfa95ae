"""A pool on the node as people write it: engines, tenants and their keys in Secrets, all applied with kubectl."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, Final

import httpx
from support.cluster.client import DEPLOYMENT, FAIR_POOL, POD, SERVICE, Client, Document
from support.cluster.definitions import fair_pool
from support.cluster.kubectl import Kubectl
from support.cluster.resources import says
from support.cluster.waiting import eventually, eventually_all
from support.cluster.whole import new_key, tenant_with_key
from support.node import engines
from support.node.asking import PATIENCE, until

POOL: Final = "sim"
OWNED: Final = f"{POOL}-fairpool"
GATEWAY: Final = f"fairpool.dev/pool={POOL}"
ADMIN_PORT: Final = 8081
SLOTS: Final = 3

_GATEWAY: Final = {"resources": {"requests": {"cpu": "500m", "memory": "128Mi"}}}

STEPS: Final = ("--step-base", "0.01", "--step-per-sequence", "0.0001", "--tokens-per-event", "8")
"""An answer takes a hundredth of a second a token, long enough for something to happen to it, in few events."""


@dataclass
class Pool:
    """`apply()`, then tenants ask at `await url()`."""

    admin: Client
    kubectl: Kubectl
    namespace: str
    weights: Mapping[str, int] = field(default_factory=lambda: {"search": 300, "batch": 100})
    spec: Mapping[str, Any] = field(default_factory=dict)
    keys: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.keys |= {name: new_key() for name in self.weights}

    def documents(self, replicas: int, *arguments: str) -> list[Document]:
        """Everything: engines, pool, tenants."""
        endpoints = {"selector": {"matchLabels": dict(engines.LABELS)}, "targetPorts": [{"number": engines.PORT}]}
        spec = {"endpoints": endpoints, "slots": {"perEndpoint": SLOTS}, "gateway": _GATEWAY, **self.spec}
        tenants = [self.tenant(name, weight) for name, weight in self.weights.items()]
        pool = fair_pool(self.namespace, POOL, **spec)
        return [engines.engines(self.namespace, replicas, *(arguments or STEPS)), pool, *chain.from_iterable(tenants)]

    def tenant(self, name: str, weight: int, **spec: Any) -> list[Document]:
        """One tenant, and the Secret with its key."""
        return tenant_with_key(self.namespace, name, self.keys[name], weight=weight, poolRef={"name": POOL}, **spec)

    async def apply(self, documents: Sequence[Document]) -> None:
        """`kubectl apply --server-side`."""
        await self.kubectl.apply(list(documents), "--server-side", "--force-conflicts")

    async def url(self) -> str:
        """Where tenants ask: the Service, by its number, for there is no DNS here."""
        service = await eventually(self.admin, SERVICE, OWNED, self.namespace, lambda _: True)
        return f"http://{service['spec']['clusterIP']}/v1"

    async def scale(self, replicas: int) -> None:
        """Have so many engines, and wait for no more than the API server."""
        await self.kubectl("scale", "deployment", engines.NAME, f"--replicas={replicas}", "-n", self.namespace)

    async def reports(self, within: float = PATIENCE, **figures: int) -> Document:
        """Wait until the pool's gateway reports this, such as `endpointsReady=2`."""

        def so(pool: Document) -> bool:
            said = pool.get("status", {}).get("gateway") or {}
            return figures.items() <= said.items()

        return await eventually(self.admin, FAIR_POOL, POOL, self.namespace, so, within)

    async def counts_by(self, **weights: int) -> None:
        """Wait until the pool's gateway counts by these weights of tenants."""

        async def so() -> bool:
            shown = (await self.shown("debug/tenants"))["tenants"]
            return weights.items() <= {each["tenant"]: each["weight"] for each in shown}.items()

        await until(so)

    async def ready(self, within: float = PATIENCE) -> Document:
        """Wait until the pool is Ready."""
        return await eventually(self.admin, FAIR_POOL, POOL, self.namespace, says("Ready", "True"), within)

    async def gateways(self, condition: Any = bool, within: float = PATIENCE) -> list[Document]:
        """The gateway's pods, once they are so."""
        found = await eventually_all(self.admin, POD, self.namespace, condition, within, labelSelector=GATEWAY)
        return list(found.values())

    async def shown(self, path: str) -> Any:
        """What the gateway's admin port shows, such as `debug/tenants`."""
        (pod,) = await self.gateways(lambda found: len(found) == 1)
        async with httpx.AsyncClient(trust_env=False) as http:
            answer = await http.get(f"http://{pod['status']['podIP']}:{ADMIN_PORT}/{path}")
            return answer.raise_for_status().json()

    async def available(self, within: float = PATIENCE) -> Document:
        """Wait until the gateway's Deployment is rolled out."""

        def so(deployment: Document) -> bool:
            status = deployment.get("status", {})
            return (
                status.get("observedGeneration") == deployment["metadata"]["generation"]
                and status.get("updatedReplicas") == status.get("readyReplicas") == status.get("replicas") == 1
            )

        return await eventually(self.admin, DEPLOYMENT, OWNED, self.namespace, so, within)
