"""Whether values are what a definition's schema says, field by field, as the API server finds it.

What always holds: every validator that applies to a value is asked, also where another has refused it already, for the
server reports them all. Definitions use some of OpenAPI's keywords only, and a schema with another is not understood.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date
from typing import Any, Final

from fairpool_operator.definitions import Schema
from fairpool_operator.manifests import Steps
from fairpool_operator.validate.causes import Cause, Fault, cause, rendered

Matches = Callable[[str, str], bool]
"""Whether a text has a part that a pattern describes, in the pattern language of the server (RE2)."""

KEYWORDS: Final = frozenset(
    {
        *("additionalProperties", "default", "description", "enum", "format", "items", "maxItems", "maxLength"),
        *("maxProperties", "maximum", "minItems", "minLength", "minimum", "nullable", "pattern", "properties"),
        *("required", "type", "x-kubernetes-int-or-string", "x-kubernetes-list-map-keys", "x-kubernetes-list-type"),
        *("x-kubernetes-map-type", "x-kubernetes-validations"),
    }
)
"""What is understood, all but the validations here."""

FORMATS: Final = frozenset({"date-time", "int32", "int64"})

_BITS: Final[Mapping[str, int]] = {"int32": 31, "int64": 63}
_TIME: Final = re.compile(r"(\d{4}-\d\d-\d\d)t(\d\d):(\d\d):(\d\d)(.\d+)?(z|[+-]\d\d:\d\d)", re.IGNORECASE | re.ASCII)


def check_values(schema: Schema, value: Any, matches: Matches, path: Steps = ()) -> Iterator[Cause]:
    """What is wrong with a value."""
    yield from _type(schema, value, path)
    if value is not None:
        yield from _text(schema, value, matches, path)
        yield from _number(schema, value, path)
        if isinstance(value, list):
            yield from _list(schema, value, matches, path)
    if "enum" in schema and value not in schema["enum"]:
        supported = ", ".join(json.dumps(choice) for choice in schema["enum"])
        yield cause(path, Fault.UNSUPPORTED, f"supported values: {supported}", value)
    if isinstance(value, dict):
        yield from _object(schema, value, matches, path)


def check_lists(schema: Schema, value: Any, path: Steps = ()) -> Iterator[Cause]:
    """What is twice in lists that are sets, or maps by a name."""
    if isinstance(value, dict):
        for name, item in value.items():
            inner = schema.get("properties", {}).get(name, schema.get("additionalProperties", {}))
            yield from check_lists(inner, item, (*path, name))
    elif isinstance(value, list):
        if (kind := schema.get("x-kubernetes-list-type")) in {"map", "set"}:
            keys = schema["x-kubernetes-list-map-keys"] if kind == "map" else None
            yield from _twice(value, keys, path)
        for number, item in enumerate(value):
            yield from check_lists(schema.get("items", {}), item, (*path, number))


def is_instant(text: str) -> bool:
    """Whether a text is a moment that there is, as RFC 3339 writes one."""
    found = _TIME.fullmatch(text)
    if not found or found[2] > "23" or found[3] > "59" or found[4] > "59":
        return False
    try:
        date.fromisoformat(found[1])
    except ValueError:
        return False
    return True


def _type(schema: Schema, value: Any, path: Steps) -> Iterator[Cause]:
    types = ["integer", "string"] if schema.get("x-kubernetes-int-or-string") else [schema["type"]]
    found, format_ = _KINDS[type(value)], schema.get("format", "")
    if value is None:
        if not schema.get("nullable"):
            yield _wrong_type(path, ",".join(types), "null")
    elif found in types or (found == "number" and "integer" in types and _is_whole(value)):
        return
    elif format_ and found not in {"array", "string"}:
        yield _wrong_type(path, format_, "float64" if found == "number" else "")
    elif not format_ or "integer" in types:
        yield _wrong_type(path, ",".join(types), found)


def _wrong_type(path: Steps, wanted: str, found: str) -> Cause:
    detail = f'"{found}": {rendered(path)} in body must be of type {wanted}: "{found}"'
    return cause(path, Fault.INVALID, detail, blocks=True)


def _text(schema: Schema, value: Any, matches: Matches, path: Steps) -> Iterator[Cause]:
    if not isinstance(value, str):
        return
    if len(value) > schema.get("maxLength", len(value)):
        yield cause(path, Fault.TOO_LONG, f"may not be more than {schema['maxLength']} bytes")
    elif len(value) < schema.get("minLength", 0):
        detail = f"{rendered(path)} in body should be at least {schema['minLength']} chars long"
        yield cause(path, Fault.INVALID, detail)
    elif "pattern" in schema and not matches(value, schema["pattern"]):
        yield cause(path, Fault.INVALID, f"{rendered(path)} in body should match '{schema['pattern']}'")
    if schema.get("format") == "date-time" and not is_instant(value):
        yield cause(path, Fault.INVALID, f"{rendered(path)} in body must be of type date-time", blocks=True)


def _number(schema: Schema, value: Any, path: Steps) -> Iterator[Cause]:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return
    if schema.get("type") == "integer":
        format_ = schema.get("format")
        most = 2 ** _BITS.get(format_ or "", 63)
        if value != int(value) or not -most <= value < most:
            which = f" with format {format_}" if format_ else " (default format)"
            yield cause((), Fault.INVALID, f'"": Checked value must be of type integer{which} in {rendered(path)}')
    if value > schema.get("maximum", value):
        detail = f"{rendered(path)} in body should be less than or equal to {schema['maximum']}"
        yield cause(path, Fault.INVALID, detail, value)
    if value < schema.get("minimum", value):
        detail = f"{rendered(path)} in body should be greater than or equal to {schema['minimum']}"
        yield cause(path, Fault.INVALID, detail, value)


def _list(schema: Schema, value: Sequence[Any], matches: Matches, path: Steps) -> Iterator[Cause]:
    for number, item in enumerate(value):
        if "items" in schema:
            yield from check_values(schema["items"], item, matches, (*path, number))
    if len(value) < schema.get("minItems", 0):
        detail = f"{rendered(path)} in body should have at least {schema['minItems']} items"
        yield cause(path, Fault.INVALID, detail, len(value))
    if len(value) > schema.get("maxItems", len(value)):
        yield cause(path, Fault.TOO_MANY, f"must have at most {schema['maxItems']} items", len(value))


def _object(schema: Schema, value: Mapping[str, Any], matches: Matches, path: Steps) -> Iterator[Cause]:
    if len(value) > schema.get("maxProperties", len(value)):
        yield cause(path, Fault.TOO_MANY, f"must have at most {schema['maxProperties']} items", len(value))
    for name, item in value.items():
        inner = schema.get("properties", {}).get(name, schema.get("additionalProperties"))
        if inner is not None:
            yield from check_values(inner, item, matches, (*path, name))
    for name in schema.get("required", ()):
        if name not in value:
            yield cause((*path, name), Fault.REQUIRED)


def _twice(items: Sequence[Any], keys: Sequence[str] | None, path: Steps) -> Iterator[Cause]:
    if keys is not None:
        for number, item in enumerate(items):
            if not isinstance(item, dict | None):
                yield cause((*path, number), Fault.INVALID, "must be an object for an array of list-type map")
                return
        items = [{key: item[key] for key in keys if key in item} if item else {} for item in items]
    seen: dict[str, int] = {}
    for number, item in enumerate(items):
        form = json.dumps(item, sort_keys=True)
        seen[form] = seen.get(form, 0) + 1
        if seen[form] == 2:
            yield cause((*path, number), Fault.DUPLICATE)


_KINDS: Final = {
    type(None): "null",
    bool: "boolean",
    int: "integer",
    float: "number",
    str: "string",
    list: "array",
    dict: "object",
}


def _is_whole(number: float) -> bool:
    return abs(number) < 2**53 and number == int(number)
