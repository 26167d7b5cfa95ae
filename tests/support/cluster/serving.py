"""What a pool's gateway and the Deployment's controller would write, where neither runs."""

from __future__ import annotations

from typing import Any

from support.cluster.client import DEPLOYMENT, FAIR_POOL, SECRET, Client, Document
from support.cluster.pods import FakePods
from support.cluster.waiting import eventually
from support.resources import rolled_out, rolling_out


async def gateway_pod(pods: FakePods, pool: str = "llama", name: str = "gateway") -> str:
    """Make a pod of the pool's gateway; returns its UID."""
    labels = {"app.kubernetes.io/name": "fairpool-gateway", "fairpool.dev/pool": pool}
    made = await pods.add(name, labels=labels, gpus=0)
    uid: str = made["metadata"]["uid"]
    return uid


async def deployed(admin: Client, namespace: str, pool: str = "llama", **conditions: str) -> None:
    """Have the pool's Deployment, once it is there, say so as its controller does: `Available="True"`.

    What is available and does not progress is an earlier edition of it.
    """
    found = await eventually(admin, DEPLOYMENT, f"{pool}-fairpool", namespace, lambda _: True)
    counts: Document = {"observedGeneration": found["metadata"]["generation"]}
    if conditions.get("Available") == "True":
        counts = rolling_out(found) if "Progressing" in conditions else rolled_out(found)
    said = [{"type": type_, "status": status} for type_, status in conditions.items()]
    status = {"status": {**counts, "conditions": said}}
    await admin.patch(DEPLOYMENT, f"{pool}-fairpool", namespace, status, "status")


async def report(admin: Client, namespace: str, uid: str, pool: str = "llama", **fields: Any) -> None:
    """Say as the gateway in that pod does that it uses the newest configuration and has found no endpoint."""
    newest = await eventually(admin, SECRET, f"{pool}-fairpool-config", namespace, lambda _: True)
    used = newest["metadata"]["annotations"]["fairpool.dev/config-hash"]
    said = {"podUID": uid, "configHash": used, "endpointsReady": 0, "endpointsTotal": 0, **fields}
    about: Document = {"apiVersion": FAIR_POOL.api_version, "kind": FAIR_POOL.name, "status": {"gateway": said}}
    await admin.apply({**about, "metadata": {"name": pool, "namespace": namespace}}, "status", "fairpool-gateway")
