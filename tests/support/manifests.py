"""The manifests as they are in their files, and what the operator would make beside them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import yaml
from support.compiling import SmallCluster
from support.resources import metadata

from fairpool_operator.resources.selectors import LabelSelector
from fairpool_operator.view import PoolKey

MANIFESTS: Final = Path(__file__).parents[2] / "manifests"
SAMPLES: Final = sorted((MANIFESTS / "samples").glob("*.yaml"))


def documents(path: Path) -> list[Any]:
    """What is in one file."""
    return [each for each in yaml.safe_load_all(path.read_text(encoding="utf-8")) if each is not None]


def of_kind(found: list[Any], kind: str) -> list[Any]:
    """Those of one kind."""
    return [each for each in found if each["kind"] == kind]


def made_for(pool: Mapping[str, Any]) -> dict[str, Any]:
    """What the operator makes for a pool, by kind."""
    name, namespace = pool["metadata"]["name"], pool["metadata"].get("namespace", "inference")
    there = {**pool, "metadata": metadata(name, namespace), "status": {}}
    return {each["kind"]: each for each in SmallCluster(there, key=PoolKey(namespace, name)).compiled().objects}


def chooses(selector: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    """Whether a selector, as a manifest has it, chooses these labels."""
    return LabelSelector.model_validate(dict(selector), by_alias=True).matches(labels)


def pod_labels(deployment: Mapping[str, Any]) -> Mapping[str, str]:
    """The labels of a Deployment's pods."""
    labels: Mapping[str, str] = deployment["spec"]["template"]["metadata"]["labels"]
    return labels


def container_of(deployment: Mapping[str, Any]) -> Any:
    """The only container of a Deployment's pods."""
    [only] = deployment["spec"]["template"]["spec"]["containers"]
    return only


def kustomizations() -> list[Path]:
    """The directories that kustomize builds by themselves; components go with others."""
    return [path.parent for path in sorted(MANIFESTS.rglob("kustomization.yaml")) if "components" not in path.parts]
