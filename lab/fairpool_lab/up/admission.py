"""What an API server would say of a resource: why it refuses it or, if it does not, as what it stores it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from fairpool_operator.definitions import definitions
from fairpool_operator.manifests import Steps
from fairpool_operator.validate.causes import rendered
from fairpool_operator.validate.metadata import check_types
from fairpool_operator.validate.secrets import problems_of
from fairpool_operator.validate.server import check


@dataclass(frozen=True, slots=True)
class Verdict:
    """One resource: what is wrong with which of its fields, and what is stored if nothing is."""

    causes: tuple[tuple[Steps, str], ...]
    stored: Mapping[str, Any]


def judge(resource: Mapping[str, Any]) -> Verdict:
    """The verdict on a FairPool, TenantWeight, Secret or Namespace; of the last two as much as counts here."""
    if resource["kind"] in definitions():
        causes, stored = check(resource)
        return Verdict(tuple((each.path, f"{rendered(each.path)}: {each.message}") for each in causes), stored)
    found = tuple((path, f"{rendered(path)}: {why}") for path, why in _problems(resource))
    return Verdict(found, resource)


def _problems(resource: Mapping[str, Any]) -> Iterator[tuple[Steps, str]]:
    metadata = resource.get("metadata")
    if not isinstance(metadata, dict) or not isinstance(metadata.get("name"), str):
        yield ("metadata", "name"), "is missing"
    elif unreadable := list(check_types(metadata)):
        yield from ((each.path, each.message) for each in unreadable)
    elif resource["kind"] == "Secret":
        yield from problems_of(resource)
