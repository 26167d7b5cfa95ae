"""One pool's gateway as it runs in a pod: with the token of a ServiceAccount that has its own Role and nothing else."""

from __future__ import annotations

import asyncio
import base64
import gzip
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import httpx
from support.cluster.access import Access
from support.cluster.client import FAIR_POOL, SECRET, Client, Document
from support.cluster.definitions import fair_pool
from support.cluster.pods import LABELS, FakePods
from support.cluster.waiting import eventually
from support.config import pool_document
from support.gateway_process import GatewayProcess, started_gateway
from support.scripted_endpoint import PATIENCE

from fairpool_gateway.config import PoolConfig, dump
from fairpool_gateway.configwatch.secret import hash_of
from fairpool_operator.compile.objects.access import role
from fairpool_operator.resources import FairPool

POOL: Final = "llama"
CONFIG: Final = "llama-fairpool-config"

Account = Callable[..., Awaitable[Access]]


class PoolInCluster:
    """A FairPool and the Secret with its configuration, as an operator keeps them; no operator runs."""

    def __init__(self, admin: Client, namespace: str, pods: FakePods) -> None:
        self.pods = pods
        self._admin = admin
        self._namespace = namespace

    def config(self, **fields: Any) -> PoolConfig:
        """The pool's configuration: the pods of the test, tenants `a` and `b`, and these fields."""
        found = {"selector": {"matchLabels": dict(LABELS)}, "targetPorts": [{"number": self.pods.port}]}
        return PoolConfig.model_validate(
            pool_document(
                **{
                    "pool": POOL,
                    "models": ["sim"],
                    "endpoints": [],
                    "discovery": found,
                    "tenants": [{"name": "a"}, {"name": "b"}],
                    "probe": {"interval": "200ms"},
                    **fields,
                }
            )
        )

    async def create(self, account: Account) -> Access:
        """Make the FairPool and, with the operator's Role for it, the gateway's ServiceAccount; returns its access."""
        made = await self._admin.create(fair_pool(self._namespace, POOL))
        return await account("gateway", rules=role(FairPool.model_validate(made))["rules"])

    async def write(self, **fields: Any) -> str:
        """Have the Secret hold this configuration; returns its hash."""
        text = dump(self.config(**fields)).encode()
        await self.write_data({"config.json.gz": base64.b64encode(gzip.compress(text, mtime=0)).decode()})
        return hash_of(text)

    async def write_data(self, data: Mapping[str, str]) -> None:
        """Have the Secret hold this."""
        metadata = {"name": CONFIG, "namespace": self._namespace, "labels": {"fairpool.dev/keys": "config"}}
        secret = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": "fairpool.dev/config"}
        await self._admin.apply({**secret, "data": dict(data)})

    async def delete_secret(self) -> None:
        """Take it away."""
        await self._admin.delete(SECRET, CONFIG, self._namespace)

    async def reports(self, condition: Callable[[Document], object]) -> Document:
        """Wait until the gateway reports this; returns what it says."""

        def holds(pool: Document) -> object:
            said = (pool.get("status") or {}).get("gateway")
            return said is not None and condition(said)

        found = await eventually(self._admin, FAIR_POOL, POOL, self._namespace, holds)
        said: Document = found["status"]["gateway"]
        return said


@asynccontextmanager
async def gateway_in(
    namespace: str, access: Access, directory: Path, *more: str, uid: str = "pod-uid"
) -> AsyncIterator[GatewayProcess]:
    """The gateway of that pool as a process of its own, as soon as it was started."""
    kubeconfig = access.write(directory / f"{uid}.kubeconfig", namespace)
    arguments = ("--pool", POOL, "--namespace", namespace, "--config-secret", CONFIG, "--pod-uid", uid)
    async with started_gateway(*arguments, "--kubeconfig", str(kubeconfig), "--in-pod", *more) as running:
        yield running


async def readiness(gateway: GatewayProcess, condition: Callable[[int, Document], object]) -> Document:
    """Wait until `/readyz` answers so, by its status and its detail; returns the detail."""
    async with httpx.AsyncClient() as client, asyncio.timeout(PATIENCE * 3):
        while True:
            answer = await client.get(f"{gateway.admin_url}/readyz")
            detail: Document = answer.json()
            if condition(answer.status_code, detail):
                return detail
            await asyncio.sleep(0.05)


async def metric(gateway: GatewayProcess, sample: str) -> float | None:
    """The value of a sample as it is written, such as `fairpool_followed{what="pods"}`."""
    async with httpx.AsyncClient() as client:
        page = (await client.get(f"{gateway.admin_url}/metrics")).text
    return next((float(line.rpartition(" ")[2]) for line in page.splitlines() if line.startswith(sample)), None)


def decisions(log: Path, event: str) -> list[Document]:
    """The lines of a decision log of one kind, as far as they are written whole."""
    lines = [json.loads(line) for line in log.read_bytes().split(b"\n")[:-1]]
    return [line for line in lines if line["event"] == event]


async def decided(log: Path, event: str, condition: Callable[[Document], object]) -> Document:
    """Wait until a decision log has such a line."""
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        found = next(filter(condition, reversed(decisions(log, event))), None)
        if found is not None:
            return found
        await asyncio.sleep(0.02)
    raise AssertionError(f"the decision log never told of such a {event}")
