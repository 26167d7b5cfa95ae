"""Resources that do not go together: the table, and each of its cases as documents."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import yaml
from support.cluster.client import Document
from support.cluster.definitions import ROOT, fair_pool, tenant_weight

TABLE: Final = ROOT / "tests" / "cluster" / "bad_together.yaml"
PASTED: Final = "sk-pasted"
"""What the table has for an API key that somebody put where the name of one belongs: it is to be repeated nowhere."""
TEAM_LABELS: Final = {"team": "yes"}


@dataclass(frozen=True)
class Told:
    """What is to be told of one resource."""

    kind: str
    name: str
    place: str
    says: str


@dataclass(frozen=True)
class BadTogether:
    """One case: its documents, in the order in which they are made, and what is to be told."""

    case: str
    documents: Sequence[Document]
    told: Sequence[Told]


def bad_together(home: str, team: str) -> list[BadTogether]:
    """All cases, in two namespaces."""
    text = TABLE.read_text().replace("HOME", home).replace("TEAM", team)
    return [
        BadTogether(
            case["case"],
            [_document(each, home) for each in case["there"]],
            [Told(*each["of"].split(), each["place"], each["says"]) for each in case["told"]],
        )
        for case in yaml.safe_load(text)
    ]


def as_text(documents: Sequence[Document]) -> str:
    """Documents as a file holds them."""
    return "\n---\n".join(json.dumps(document, indent=1) for document in documents)


def _document(row: Mapping[str, Any], home: str) -> Document:
    namespace, name, spec = row.get("namespace", home), row["name"], row.get("spec", {})
    match row["kind"]:
        case "FairPool":
            pool = fair_pool(namespace, name, **spec)
            pool["spec"]["endpoints"].update(row.get("endpoints", {}))
            return pool
        case "TenantWeight":
            return tenant_weight(namespace, name, **spec)
        case _:
            labels = {"fairpool.dev/keys": row["use"]} if "use" in row else {}
            data = {key: base64.b64encode(value.encode()).decode() for key, value in row["values"].items()}
            metadata = {"name": name, "namespace": namespace, "labels": labels}
            return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": data}
