"""What is wrong with a configuration, in words: one line a problem, `path: what is wrong`.

A path uses the file's own names. What always holds: no line repeats a credential. Whatever stands beneath a tenant's
`keys` or where another credential is told of is never repeated, not even as the name of a field, unless that is nearly
the name of one known here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import get_args

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from fairpool_gateway.config.names import HOW_TO_DIGEST
from fairpool_gateway.config.pool import Path, PoolConfig, RulesBroken
from fairpool_gateway.config.settings import Settings
from fairpool_gateway.config.shown import shown

_NAMED: Mapping[str | int, str] = {"tenants": "tenant", "endpoints": "endpoint"}
"""Lists whose items have names that a message about them repeats."""

_SECRET = frozenset({"keys", "proxyCredential", "endpointCredential"})
"""Beneath these a credential may stand in the wrong place."""

_MISSING: Mapping[str | int, str] = {
    "pool": "is missing: give the pool a name, such as llama-70b",
    "name": "is missing: logs and metrics call it by its name",
    "url": "is missing: give http://HOST:PORT or https://HOST:PORT",
    "caFile": "is missing: give the path of a file with the certificates of the authorities to trust",
    "serverName": "is missing: give the name that the endpoints' certificates are for",
    "selector": "is missing: say by their labels which pods are endpoints",
    "targetPorts": "is missing: give the number or the name of the port to connect to",
    "digest": f"is missing: give {HOW_TO_DIGEST}",
}


def describe(error: ValidationError, data: object, source: str) -> list[str]:
    """The problems that pydantic found in `data`, in the order of the file's fields."""
    return [
        f"{written(path) or source}: {message}{_whose(path, data)}"
        for detail in error.errors(include_url=False)
        for path, message in _problems(detail)
    ]


def written(path: Path) -> str:
    """The path as people write it: `tenants[2].weight`."""
    written = ""
    for step in path:
        if isinstance(step, int):
            written += f"[{step}]"
        else:
            name = step if step.isprintable() and len(step) <= 64 else ascii(step[:64])
            written += f".{name}" if written else name
    return written


def given_twice(path: Path, source: str) -> str:
    """The problem of a field that its mapping names more than once."""
    known, _ = _known_part(path)
    if known == path:
        return f"{written(path)}: is given more than once; keep one"
    return f"{written(known) or source}: gives a field that is not known more than once"


def _problems(detail: ErrorDetails) -> Iterator[tuple[Path, str]]:
    path = detail["loc"]
    cause = detail.get("ctx", {}).get("error")
    if isinstance(cause, RulesBroken):
        yield from cause.problems
    elif isinstance(cause, ValueError):
        yield path, str(cause)
    elif detail["type"] in {"extra_forbidden", "invalid_key"}:
        yield _unknown(path)
    elif detail["type"] == "missing":
        yield path, _MISSING.get(path[-1], "is missing")
    elif detail["input"] is None:
        yield path, "is empty: give it a value, or leave it out"
    elif detail["type"] in {"enum", "literal_error"}:
        expected = detail["ctx"]["expected"].replace("'", "")
        yield path, f"must be {expected}, not {shown(detail['input'])}"
    elif detail["type"] in {"model_type", "model_attributes_type"}:
        yield path, f"must be a mapping of fields, not {_kind(detail['input'])}"
    elif detail["type"] == "tuple_type":
        yield path, f"must be a list, not {_kind(detail['input'])}"
    else:
        yield path, f"cannot be used ({detail['type']})"


def _unknown(path: Path) -> tuple[Path, str]:
    """A field that is not known here. Case and underscores are the likeliest mistakes, so they do not count."""
    parent, name = path[:-1], str(path[-1])
    _, settings = _known_part(parent)
    known = [str(field.alias) for field in settings.model_fields.values()]
    plain = {each.lower(): each for each in known}
    close = get_close_matches(name.lower().replace("_", ""), plain, n=1, cutoff=0.7)
    if close:
        return (*parent, name), f"is not a field here; did you mean {plain[close[0]]}?"
    if not _SECRET.isdisjoint(parent):
        return parent, f"has a field that is not known here; there are {', '.join(known)}"
    return (*parent, name), f"is not a field here; there are {', '.join(known)}"


def _known_part(path: Path) -> tuple[Path, type[Settings]]:
    """How far a path leads through fields that are known, and the settings that it leads to."""
    found: type[Settings] = PoolConfig
    for length, step in enumerate(path):
        if isinstance(step, str):
            field = next((field for field in found.model_fields.values() if field.alias == step), None)
            if field is None:
                return path[:length], found
            found = _settings_in(field.annotation) or found
    return path, found


def _settings_in(annotation: object) -> type[Settings] | None:
    if isinstance(annotation, type) and issubclass(annotation, Settings):
        return annotation
    return next(filter(None, map(_settings_in, get_args(annotation))), None)


def _kind(value: object) -> str:
    """What a value is, without saying it."""
    match value:
        case None:
            return "nothing"
        case bool() | int() | float() | str():
            return "a single value"
        case _:
            return shown(value)


def _whose(path: Path, data: object) -> str:
    """The name of the tenant or endpoint that a problem is about."""
    match path, data:
        case (str(items), int(index), str(field), *_), dict() if items in _NAMED and field != "name":
            match data[items][index]:
                case {"name": str(name)} if name.isprintable() and len(name) <= 64:
                    return f" ({_NAMED[items]} {name})"
    return ""
