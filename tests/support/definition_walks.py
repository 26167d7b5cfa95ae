"""Goes through the schema of a CustomResourceDefinition, and does with defaults what the API server does."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

Schema = Mapping[str, Any]


def schema_of(definition: Schema) -> Schema:
    """The schema of its one version."""
    (version,) = definition["spec"]["versions"]
    schema: Schema = version["schema"]["openAPIV3Schema"]
    return schema


def fields(schema: Schema, place: str = "") -> Iterator[tuple[str, Schema]]:
    """Every field beneath a schema, with its place: `.spec.models`, `.spec.models[]`."""
    for name, part in schema.get("properties", {}).items():
        yield f"{place}.{name}", part
        yield from fields(part, f"{place}.{name}")
    for key, mark in (("items", "[]"), ("additionalProperties", ".*")):
        if key in schema:
            yield f"{place}{mark}", schema[key]
            yield from fields(schema[key], f"{place}{mark}")


def parts(schema: Schema) -> Iterator[Schema]:
    """A schema and all beneath it."""
    yield schema
    for _, part in fields(schema):
        yield part


def defaulted(schema: Schema, value: Any) -> Any:
    """A value with the defaults of its fields, as the API server fills them in."""
    if isinstance(value, Mapping):
        filled = dict(value)
        for name, part in schema.get("properties", {}).items():
            if filled.get(name) is None and "default" in part:
                filled[name] = copy.deepcopy(part["default"])
            if name in filled:
                filled[name] = defaulted(part, filled[name])
        return filled
    if isinstance(value, list):
        return [defaulted(schema["items"], item) for item in value]
    return value


def matching(schema: Schema) -> list[str]:
    """The patterns that a text has to match: by the schema's `pattern`, and by rules that say no more than that."""
    rules = (_MATCHES.fullmatch(rule) for rule in _rules(schema))
    return [*filter(None, [schema.get("pattern")]), *(found[1] for found in rules if found)]


def obeys(schema: Schema, text: str) -> bool:
    """Whether the API server would take a text, as far as the rules about it can be understood here.

    Raises:
        ValueError: there is a rule that cannot.
    """
    if len(text) > schema["maxLength"] or len(text) < schema.get("minLength", 0):
        return False
    patterns_met = all(re.search(pattern, text) for pattern in matching(schema))
    return patterns_met and all(_obeys(rule, text) for rule in _rules(schema))


def _rules(schema: Schema) -> list[str]:
    return [rule["rule"] for rule in schema.get("x-kubernetes-validations", ())]


_MATCHES: Final = re.compile(r"self\.matches\(r?'(.*)'\)")
_UNDERSTOOD: Final[Mapping[re.Pattern[str], Callable[[str, str], bool]]] = {
    _MATCHES: lambda pattern, text: bool(re.search(pattern, text)),
    re.compile(r"!self\.lowerAscii\(\)\.matches\(r'(.*)'\)"): lambda pattern, text: (
        not re.search(pattern, text.lower())
    ),
    re.compile(r"!\(self\.lowerAscii\(\) in \[(.*)\]\)"): lambda names, text: f"'{text.lower()}'" not in names,
    re.compile(r"self != '(.*)'"): lambda other, text: text != other,
    re.compile(r"isIP\(self\) \|\| self\.matches\('(.*)'\)"): lambda pattern, text: bool(re.search(pattern, text)),
}


def _obeys(rule: str, text: str) -> bool:
    for form, holds in _UNDERSTOOD.items():
        if found := form.fullmatch(rule):
            return holds(found[1], text)
    raise ValueError(rule)
