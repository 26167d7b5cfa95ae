"""Kinds that other projects define, as far as manifests here use them, so that these are admitted by a real server.

`other_projects.yaml` has each kind's fields and their types in a short form, `"*"` for any name. All else is refused.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import yaml
from support.cluster.client import CRD, Client, Document, Kind, Refused

_FILE = Path(__file__).with_suffix(".yaml")


async def install_other_projects(client: Client) -> None:
    """Have these kinds served. They stay, for all tests."""
    made = [_definition(each) for each in yaml.safe_load(_FILE.read_text(encoding="utf-8"))]
    for definition in made:
        if await client.find(CRD, definition["metadata"]["name"]) is None:
            await client.apply(definition)
    for definition in made:
        await _served(client, definition)


async def _served(client: Client, definition: Document) -> None:
    spec = definition["spec"]
    kind = Kind(f"{spec['group']}/{spec['versions'][0]['name']}", spec["names"]["kind"])
    async with asyncio.timeout(30):
        while True:
            try:
                await client.list(kind, limit="1")
            except Refused as refused:
                if refused.status != 404:
                    raise
                await asyncio.sleep(0.05)
            else:
                return


def _definition(short: dict[str, Any]) -> Document:
    kind, version, group = short["kind"].split(".", 2)
    names = {"kind": kind, "listKind": f"{kind}List", "plural": short["plural"], "singular": kind.lower()}
    properties = {"spec": _schema(short["spec"])}
    served = {
        "name": version,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object", "properties": properties}},
    }
    return {
        "apiVersion": CRD.api_version,
        "kind": CRD.name,
        "metadata": {
            "name": f"{short['plural']}.{group}",
            "annotations": {"api-approved.kubernetes.io": "unapproved, for tests"},
        },
        "spec": {"group": group, "scope": "Namespaced", "names": names, "versions": [served]},
    }


def _schema(short: Any) -> Document:
    match short:
        case str():
            return {"type": short}
        case [each]:
            return {"type": "array", "items": _schema(each)}
        case {"*": each}:
            return {"type": "object", "additionalProperties": _schema(each)}
        case dict():
            return {"type": "object", "properties": {name: _schema(each) for name, each in short.items()}}
    raise AssertionError(short)
