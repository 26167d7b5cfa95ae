"""What an API server would say of a resource: why it refuses it or, if it does not, as what it stores it.

It stores a little that the operator cannot read; that is refused here, so that its last good edition stays in force.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from fairpool_operator.definitions import definitions
from fairpool_operator.errors import Unreadable
from fairpool_operator.manifests import Steps
from fairpool_operator.resources import read_pool, read_tenant_weight
from fairpool_operator.validate.causes import Cause, Fault, cause, rendered
from fairpool_operator.validate.metadata import check_types, name_of
from fairpool_operator.validate.secrets import check_secret
from fairpool_operator.validate.server import check

_READERS: Final[Mapping[str, Callable[[Mapping[str, Any]], object]]] = {
    "FairPool": read_pool,
    "TenantWeight": read_tenant_weight,
}


@dataclass(frozen=True, slots=True)
class Verdict:
    """One resource: what is wrong with which of its fields, none if with all of it; what is stored if nothing is."""

    causes: tuple[tuple[Steps, str], ...]
    stored: Mapping[str, Any]


def judge(resource: Mapping[str, Any], before: Mapping[str, Any] | None = None) -> Verdict:
    """The verdict on a FairPool, TenantWeight, Secret or Namespace; of the last two as much as counts here.

    Args:
        resource: the resource as it is written, in its namespace.
        before: as what it is stored, if it is.
    """
    if resource["kind"] in definitions():
        causes, stored = check(resource, before)
        refused = tuple((each.path, _worded(each)) for each in causes)
        return Verdict(refused or tuple(_unread(stored)), stored)
    return Verdict(tuple((each.place, _worded(each)) for each in _problems(resource, before)), resource)


def _worded(cause: Cause) -> str:
    return f"{rendered(cause.path)}: {cause.message}" if cause.path else cause.message


def _unread(stored: Mapping[str, Any]) -> Iterator[tuple[Steps, str]]:
    named = {field: stored["metadata"].get(field) for field in ("name", "namespace")}
    metadata = {**named, "uid": "any", "generation": 1, "creationTimestamp": "2000-01-01T00:00:00Z"}
    try:
        _READERS[stored["kind"]]({**stored, "metadata": metadata})
    except Unreadable as problem:
        yield problem.field, str(problem)


def _problems(resource: Mapping[str, Any], before: Mapping[str, Any] | None) -> Iterator[Cause]:
    metadata = resource.get("metadata")
    if "sops" in resource:
        remedy = "its values are encrypted: decrypt it to a file that is in no repository, and add that with -f"
        yield Cause(("sops",), remedy)
    elif resource["kind"] == "Secret":
        yield from check_secret(resource, before)
    elif unreadable := list(check_types(metadata)):
        yield from unreadable
    elif not name_of(metadata or {}):
        yield cause(("metadata", "name"), Fault.REQUIRED, "name or generateName is required")
