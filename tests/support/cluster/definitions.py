"""The project's own CustomResourceDefinitions, and the smallest resources that they admit."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, Final

import yaml
from support.cluster.client import CRD, FAIR_POOL, TENANT_WEIGHT, Client, Document, Kind, Refused

ROOT: Final = Path(__file__).parents[3]
FILES: Final = {
    FAIR_POOL: ROOT / "crds" / "fairpool.dev_fairpools.yaml",
    TENANT_WEIGHT: ROOT / "crds" / "fairpool.dev_tenantweights.yaml",
}


def definitions() -> list[Document]:
    """Both, as they are in the files."""
    return [yaml.safe_load(file.read_text()) for file in FILES.values()]


async def install(client: Client) -> None:
    """Have both in the cluster as they are in the files; returns when their resources can be made."""
    for definition in definitions():
        if _content(await client.find(CRD, definition["metadata"]["name"])) != definition["spec"]:
            await client.apply(definition)
    async with asyncio.timeout(30):
        for kind in FILES:
            while not await _is_served(client, kind):  # noqa: ASYNC110 - only asking tells
                await asyncio.sleep(0.05)


def fair_pool(namespace: str, name: str = "llama", **spec: Any) -> Document:
    """The smallest FairPool, with `spec`'s fields in it."""
    endpoints = {"selector": {"matchLabels": {"app": "vllm"}}, "targetPorts": [{"number": 8000}]}
    return _resource("FairPool", namespace, name, {"endpoints": endpoints, **spec})


def tenant_weight(namespace: str, name: str = "search", **spec: Any) -> Document:
    """The smallest TenantWeight, with `spec`'s fields in it."""
    return _resource("TenantWeight", namespace, name, {"poolRef": {"name": "llama"}, **spec})


async def dry_run(client: Client, document: Document) -> Document:
    """A resource as the server would make it, which makes none.

    Raises:
        Refused: it would not.
    """
    path = (await client.resource(Kind.of(document))).path(document["metadata"]["namespace"])
    return await client.request("POST", path, document, query={"dryRun": "All", "fieldValidation": "Strict"})


def _resource(kind: str, namespace: str, name: str, spec: Document) -> Document:
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": "fairpool.dev/v1alpha1", "kind": kind, "metadata": metadata, "spec": spec}


async def _is_served(client: Client, kind: Any) -> bool:
    try:
        await client.list(kind, limit="1")
    except Refused as refused:
        if refused.status != 404:
            raise
        return False
    return True


def _content(found: Document | None) -> Document | None:
    if found is None:
        return None
    spec = dict(found["spec"])
    spec.pop("conversion", None)
    return spec
