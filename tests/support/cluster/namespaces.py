"""Namespaces that are a test's own: with a name that no other has, and gone with all that was in them at its end."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Final

from support.cluster.client import MERGE, NAMESPACE, SERVICE_ACCOUNT, Client, Document, Refused, Resource

_DISCOVERY: Final = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
_NAMES_ONLY: Final = "application/json;g=meta.k8s.io;v=v1;as=PartialObjectMetadataList"

_AT_ONCE: Final = 4
"""As many requests as are in flight: more would cost more in handshakes than they save."""


@asynccontextmanager
async def new_namespace(
    client: Client, prefix: str = "test", labels: Mapping[str, str] | None = None
) -> AsyncIterator[str]:
    """A namespace in which pods can be made; yields its name."""
    name = f"{prefix}-{secrets.token_hex(4)}"
    metadata = {"name": name, "labels": dict(labels or {})}
    await client.create({"apiVersion": NAMESPACE.api_version, "kind": NAMESPACE.name, "metadata": metadata})
    try:
        await _default_account(client, name)
        yield name
    finally:
        await remove_namespace(client, name)


async def remove_namespace(client: Client, name: str) -> None:
    """Delete a namespace and what is in it, as the namespace controller does, which need not run.

    Returns when it is gone. Finalizers of what is in it are not waited for but taken off.
    """
    with _passing_over(404, 409):
        await client.delete(NAMESPACE, name)
    resources = await _namespaced(client)
    await asyncio.gather(*(_empty(client, resources[start::_AT_ONCE], name) for start in range(_AT_ONCE)))
    while (namespace := await client.find(NAMESPACE, name)) is not None:
        finalized = {**namespace, "spec": {**namespace["spec"], "finalizers": []}}
        with _passing_over(404, 409):
            await client.request("PUT", f"/api/v1/namespaces/{name}/finalize", finalized)


async def _default_account(client: Client, namespace: str) -> None:
    """Make what a controller makes, which need not run; without it the server takes no pods."""
    metadata = {"name": "default", "namespace": namespace}
    with _passing_over(409):
        await client.create({"apiVersion": "v1", "kind": SERVICE_ACCOUNT.name, "metadata": metadata})


async def _namespaced(client: Client) -> Sequence[Resource]:
    """All that can be listed in a namespace and deleted there."""
    found = []
    for root in ("/api", "/apis"):
        for group in (await client.request("GET", root, accept=_DISCOVERY))["items"]:
            version = group["versions"][0]
            name = "/".join(filter(None, (group["metadata"].get("name"), version["version"])))
            found += [
                Resource(name, entry["resource"], True, frozenset(entry["verbs"]))
                for entry in version["resources"]
                if entry["scope"] == "Namespaced"
            ]
    return [resource for resource in found if {"list", "delete"} <= resource.verbs]


async def _empty(client: Client, resources: Iterable[Resource], namespace: str) -> None:
    options: Document = {"gracePeriodSeconds": 0, "propagationPolicy": "Background"}
    for resource in resources:
        for metadata in await _listed(client, resource.path(namespace)):
            path = resource.path(namespace, metadata["name"])
            with _passing_over(404, 409):
                if metadata.get("finalizers"):
                    await client.request("PATCH", path, {"metadata": {"finalizers": None}}, content_type=MERGE)
                await client.request("DELETE", path, options)


async def _listed(client: Client, path: str) -> Sequence[Document]:
    """The metadata of what is there; a server that has just been restarted may ask for patience with some kinds."""
    while True:
        try:
            listing = await client.request("GET", path, accept=_NAMES_ONLY)
        except Refused as refused:
            if refused.status != 429:
                raise
            await asyncio.sleep(0.1)
        else:
            return [item["metadata"] for item in listing["items"] or ()]


@contextlib.contextmanager
def _passing_over(*statuses: int) -> Iterator[None]:
    """Let pass that somebody else was there first."""
    try:
        yield
    except Refused as refused:
        if refused.status not in statuses:
            raise
