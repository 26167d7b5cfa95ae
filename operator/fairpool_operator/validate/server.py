"""The API server's verdict on one resource, without a server.

What always holds: it is the verdict on making the resource now or, where it is told what is stored, on that edit; of
its status nothing counts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from fairpool_operator.definitions import definitions, schema_of
from fairpool_operator.validate.causes import Cause, Fault, cause
from fairpool_operator.validate.metadata import check_metadata, check_types, name_of, unknown_metadata
from fairpool_operator.validate.rules import check_rules, matches
from fairpool_operator.validate.secrets import check_secret
from fairpool_operator.validate.shape import as_stored, unknown_fields
from fairpool_operator.validate.values import check_lists, check_values


def check(resource: Mapping[str, Any], before: Mapping[str, Any] | None = None) -> tuple[list[Cause], dict[str, Any]]:
    """Why the server would refuse a FairPool, TenantWeight or Secret in its namespace, and what it would make of it.

    Args:
        resource: the resource as it is written.
        before: as what it is stored, if it is.
    """
    if resource["kind"] == "Secret":
        return check_secret(resource, before), dict(resource)
    schema = schema_of(definitions()[resource["kind"]])
    unknown = [*unknown_metadata(resource.get("metadata")), *unknown_fields(schema, resource)]
    causes = [Cause(path, "unknown field") for path in unknown]
    stored: dict[str, Any] = as_stored(schema, {**resource, "status": None})
    unreadable = list(check_types(resource.get("metadata")))
    if unreadable:
        return [*causes, *unreadable], stored
    metadata = resource.get("metadata") or {}
    stored["metadata"] = {**metadata, "name": name_of(metadata)}
    found = list(_found(schema, stored))
    if any(each.blocks for each in found):
        skipped = (
            "some validation rules were not checked because the object was invalid; "
            "correct the existing errors to complete validation"
        )
        return [*causes, *found, cause((), Fault.INVALID, skipped)], stored
    return [*causes, *found, *check_rules(schema, stored, before=before)], stored


def _found(schema: Mapping[str, Any], stored: Mapping[str, Any]) -> Iterator[Cause]:
    yield from check_metadata(stored["metadata"])
    yield from check_values(schema, stored, matches)
    yield from check_lists(schema, stored)
