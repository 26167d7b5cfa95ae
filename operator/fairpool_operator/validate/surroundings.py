"""What a pool depends on as far as files show it: pools, tenants, Secrets and namespaces, put together for `compile`.

What always holds: of two resources of one age, as all in files are, the one that comes first counts as the older; a
Secret counts for what the operator would see of it, so one without the label `fairpool.dev/keys`, one that the server
would refuse, or one whose values are encrypted in the file, is not there.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from fairpool_operator.resources import FairPool
from fairpool_operator.store import Store
from fairpool_operator.validate.causes import Cause
from fairpool_operator.validate.secrets import check_secret, values_of
from fairpool_operator.view import LABEL, PoolKey, View

Name = tuple[str, str]
"""A namespace and a name."""

_BEGINNING: Final = datetime(2000, 1, 1, tzinfo=UTC)
_NAME_LABEL: Final = "kubernetes.io/metadata.name"
"""The label that every namespace has."""


class Surroundings:
    """Everything in the files that a decision depends on."""

    def __init__(self) -> None:
        self._store = Store()
        self._told = 0
        self.secrets: set[Name] = set()
        self.unusable_pools: set[PoolKey] = set()

    def add(self, resource: Mapping[str, Any]) -> None:
        """A FairPool or TenantWeight as the server would keep it."""
        self._put(resource["kind"], resource)

    def add_secret(self, resource: Mapping[str, Any]) -> list[Cause]:
        """A Secret that is in a namespace; returns why the server would refuse one that is for FairPool."""
        metadata = _mapping(resource, "metadata")
        name, namespace = metadata.get("name"), metadata.get("namespace")
        if "sops" in resource:
            return []
        if isinstance(name, str) and isinstance(namespace, str):
            self.secrets.add((namespace, name))
        if LABEL not in _mapping(metadata, "labels"):
            return []
        causes = check_secret(resource)
        if name and not causes:
            data = {key: base64.b64encode(value).decode() for key, value in values_of(resource).items()}
            self._put("Secret", {"metadata": metadata, "data": data})
        return causes

    def add_namespace(self, resource: Mapping[str, Any]) -> None:
        """A Namespace as it is in a file."""
        metadata = _mapping(resource, "metadata")
        name = metadata.get("name")
        if isinstance(name, str):
            labels = {**_mapping(metadata, "labels"), _NAME_LABEL: name}
            self._put("Namespace", {"metadata": {"name": name, "labels": labels}})

    def views(self) -> Iterator[View]:
        """What there is of each pool that may be looked at."""
        for key in sorted(self._store.keys() - self.unusable_pools):
            view = self._store.view(key)
            known = {} if view.pool is None else _known(view.pool, view)
            yield replace(view, namespaces={**known, **view.namespaces})

    def _put(self, kind: str, resource: Mapping[str, Any]) -> None:
        self._told += 1
        created = _BEGINNING + timedelta(seconds=self._told)
        metadata = {
            **resource["metadata"],
            "uid": str(self._told),
            "generation": 1,
            "creationTimestamp": created.isoformat(),
            "deletionTimestamp": None,
            "resourceVersion": str(self._told),
        }
        if kind == "Namespace":
            metadata["namespace"] = ""
        self._store.put(kind, {**resource, "metadata": metadata, "status": {}})


def _known(pool: FairPool, view: View) -> dict[str, dict[str, str]]:
    """What is known of namespaces that are in no file, where the pool asks for nothing more than their names."""
    selector = pool.spec.allowed_tenants.namespaces.selector
    if selector is None:
        return {}
    asked = {*selector.match_labels, *(each.key for each in selector.match_expressions)}
    namespaces = {each.metadata.namespace for each in view.weights} if asked == {_NAME_LABEL} else set()
    return {name: {_NAME_LABEL: name} for name in namespaces}


def _mapping(resource: Mapping[str, Any], field: str) -> Mapping[str, Any]:
    found = resource.get(field)
    return found if isinstance(found, dict) else {}
