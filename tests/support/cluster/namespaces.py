"""Namespaces that are a test's own: with a name that no other has, and gone with all that was in them at its end."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

from support.cluster.client import NAMESPACE, SERVICE_ACCOUNT, Client, Document, Refused, Resource


@asynccontextmanager
async def new_namespace(
    client: Client, prefix: str = "test", labels: Mapping[str, str] | None = None
) -> AsyncIterator[str]:
    """A namespace in which pods can be made; yields its name."""
    name = f"{prefix}-{secrets.token_hex(4)}"
    await client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels or {}}})
    try:
        await _default_account(client, name)
        yield name
    finally:
        await remove_namespace(client, name)


async def remove_namespace(client: Client, name: str) -> None:
    """Delete a namespace and what is in it, as the namespace controller does, which need not run.

    Returns when it is gone. Finalizers of what is in it are not waited for but taken off.
    """
    with contextlib.suppress(Refused):
        await client.delete(NAMESPACE, name)
    if await client.find(NAMESPACE, name) is None:
        return
    await asyncio.gather(*(_empty(client, resource, name) for resource in await client.namespaced()))
    with contextlib.suppress(Refused):
        await client.request("PUT", f"/api/v1/namespaces/{name}/finalize", await _without_finalizers(client, name))


async def _default_account(client: Client, namespace: str) -> None:
    """Make what a controller makes, which need not run; without it the server takes no pods."""
    metadata = {"name": "default", "namespace": namespace}
    try:
        await client.create({"apiVersion": "v1", "kind": SERVICE_ACCOUNT.name, "metadata": metadata})
    except Refused as refused:
        if refused.reason != "AlreadyExists":
            raise


async def _empty(client: Client, resource: Resource, namespace: str) -> None:
    path = resource.path(namespace)
    options: Document = {"gracePeriodSeconds": 0, "propagationPolicy": "Background"}
    await client.request("DELETE", path, options)
    for left in (await client.request("GET", path))["items"]:
        with contextlib.suppress(Refused):
            one = resource.path(namespace, left["metadata"]["name"])
            await client.request(
                "PATCH", one, {"metadata": {"finalizers": None}}, content_type="application/merge-patch+json"
            )


async def _without_finalizers(client: Client, name: str) -> Document:
    namespace = await client.get(NAMESPACE, name)
    return {**namespace, "spec": {**namespace["spec"], "finalizers": []}}
