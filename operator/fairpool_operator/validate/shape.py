"""What the API server does to a resource before it looks at it: fields that it does not know go, defaults come.

What always holds: what is given is not changed, and the same comes out however often it goes through.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any, Final

from fairpool_operator.definitions import Schema
from fairpool_operator.manifests import Steps

_OWN_RULES: Final = frozenset({"apiVersion", "kind", "metadata"})
"""Fields of a resource that its definition says nothing about."""


def unknown_fields(schema: Schema, value: Any, path: Steps = ()) -> Iterator[Steps]:
    """The fields that a schema does not have, the outermost of each."""
    if isinstance(value, dict):
        for name, item in value.items():
            if not path and name in _OWN_RULES:
                continue
            inner = _schema_of(schema, name)
            if inner is None:
                yield (*path, name)
            else:
                yield from unknown_fields(inner, item, (*path, name))
    elif isinstance(value, list):
        for number, item in enumerate(value):
            yield from unknown_fields(schema.get("items", {}), item, (*path, number))


def as_stored(schema: Schema, value: Any) -> Any:
    """A value without unknown fields and without those that are null for nothing, and with its defaults."""
    return _defaulted(schema, _pruned(schema, value, is_resource=True))


def _pruned(schema: Schema, value: Any, *, is_resource: bool = False) -> Any:
    if isinstance(value, dict):
        kept = {}
        for name, item in value.items():
            if is_resource and name in _OWN_RULES:
                kept[name] = item
                continue
            inner = _schema_of(schema, name)
            if inner is None or (item is None and not inner.get("nullable")):
                continue
            kept[name] = _pruned(inner, item)
        return kept
    if isinstance(value, list):
        return [_pruned(schema.get("items", {}), item) for item in value]
    return value


def _defaulted(schema: Schema, value: Any) -> Any:
    if isinstance(value, dict):
        filled = dict(value)
        for name, inner in schema.get("properties", {}).items():
            if "default" in inner and name not in filled:
                filled[name] = copy.deepcopy(inner["default"])
        for name, item in filled.items():
            inner = _schema_of(schema, name)
            if inner is not None:
                filled[name] = _defaulted(inner, item)
        return filled
    if isinstance(value, list):
        return [_defaulted(schema.get("items", {}), item) for item in value]
    return value


def _schema_of(schema: Schema, name: str) -> Schema | None:
    found: Schema | None = schema.get("properties", {}).get(name, schema.get("additionalProperties"))
    return found
