"""Many pools and tenants, and what an operator needs for them."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable, Coroutine, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from support.cluster.client import (
    DEPLOYMENT,
    FAIR_POOL,
    NETWORK_POLICY,
    POD,
    ROLE,
    ROLE_BINDING,
    SECRET,
    SERVICE,
    SERVICE_ACCOUNT,
    TENANT_WEIGHT,
    Client,
    Document,
    Kind,
)
from support.cluster.definitions import fair_pool, tenant_weight
from support.cluster.operating import Operator, config_in
from support.cluster.resources import digest, says
from support.cluster.waiting import eventually, eventually_all

_AT_ONCE = 8
_WRITABLE = (
    *(FAIR_POOL, TENANT_WEIGHT, SERVICE_ACCOUNT, ROLE, ROLE_BINDING, SECRET, SERVICE, NETWORK_POLICY, DEPLOYMENT, POD),
    Kind("events.k8s.io/v1", "Event"),
)
"""What an operator could write, but for its Lease."""


@dataclass(frozen=True)
class Size:
    """How many pools, and how many tenants each of them has."""

    pools: int
    tenants_each: int

    @property
    def tenants(self) -> int:
        """Tenants of all pools."""
        return self.pools * self.tenants_each


@dataclass(frozen=True)
class Edit:
    """What one edit of a weight took: seconds to its pool's Secret, and writes of the operator until it was at rest."""

    seconds: float
    writes: float


async def populate(admin: Client, namespace: str, size: Size) -> None:
    """Make them all, each tenant with a key of its own."""
    await _at_once(admin.create(fair_pool(namespace, pool_name(pool))) for pool in range(size.pools))
    await _at_once(
        admin.create(
            tenant_weight(
                namespace,
                tenant_name(pool, tenant),
                poolRef={"name": pool_name(pool)},
                apiKeys=[{"name": "k", "digest": digest(tenant_name(pool, tenant))}],
            )
        )
        for pool in range(size.pools)
        for tenant in range(size.tenants_each)
    )


def pool_name(number: int) -> str:
    """The name of a pool."""
    return f"pool-{number:03d}"


def tenant_name(pool: int, number: int) -> str:
    """The name of one of its tenants."""
    return f"{pool_name(pool)}-tenant-{number}"


async def settled(admin: Client, operator: Operator, namespace: str, size: Size, within: float) -> float:
    """Wait until every resource says that it is accepted and nothing is left to do; returns the seconds to the first.

    Those are counted from the call.
    """
    began = time.monotonic()
    for kind, count in ((TENANT_WEIGHT, size.tenants), (FAIR_POOL, size.pools)):
        await eventually_all(admin, kind, namespace, _all_accepted(count), within)
    seconds = time.monotonic() - began
    await at_rest(operator)
    return seconds


async def at_rest(operator: Operator) -> dict[str, float]:
    """Wait until nothing waits and a second goes by without a write; returns the operator's numbers."""
    async with asyncio.timeout(60.0):
        before: dict[str, float] = {}
        while True:
            now = await operator.numbers()
            if now["waiting_pools"] == 0 and now["api_writes_total"] == before.get("api_writes_total"):
                return now
            before = now
            await asyncio.sleep(1.0)


async def versions(admin: Client, namespace: str) -> dict[tuple[str, str], str]:
    """The resourceVersion of everything in a namespace that an operator could write, but for its Lease."""
    return {
        (kind.name, each["metadata"]["name"]): each["metadata"]["resourceVersion"]
        for kind in _WRITABLE
        for each in await admin.list(kind, namespace)
    }


def _all_accepted(count: int) -> Callable[[Mapping[str, Document]], bool]:
    return lambda found: len(found) == count and all(map(says("Accepted", "True"), found.values()))


async def edit(admin: Client, operator: Operator, namespace: str, pool: int, weight: int) -> Edit:
    """Change one tenant's weight, and wait until all that follows from it is written."""
    tenant, secret = tenant_name(pool, 0), f"{pool_name(pool)}-fairpool-config"
    before = (await operator.numbers())["api_writes_total"]
    began = time.monotonic()
    await admin.patch(TENANT_WEIGHT, tenant, namespace, {"spec": {"weight": weight}})
    await eventually(admin, SECRET, secret, namespace, lambda found: config_in(found).weights()[tenant] == weight)
    seconds = time.monotonic() - began
    total = sum(config_in(await admin.get(SECRET, secret, namespace)).weights().values())
    await eventually(
        admin, FAIR_POOL, pool_name(pool), namespace, lambda found: found["status"]["totalWeight"] == total
    )
    after = await at_rest(operator)
    return Edit(seconds, after["api_writes_total"] - before)


def peak_megabytes(pid: int) -> float:
    """The most memory that a process has had resident."""
    [kilobytes] = re.findall(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text(encoding="ascii"))
    return int(kilobytes) / 1024


async def _at_once(coroutines: Iterable[Coroutine[Any, Any, Any]]) -> None:
    waiting = iter(coroutines)

    async def work() -> None:
        for each in waiting:
            await each

    await asyncio.gather(*(work() for _ in range(_AT_ONCE)))
