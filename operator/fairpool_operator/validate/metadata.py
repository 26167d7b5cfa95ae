"""What Kubernetes asks of any resource's metadata, about which definitions say nothing.

What always holds: of metadata that cannot even be read nothing more is said than that, as the server does.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from fairpool_operator.definitions import Schema
from fairpool_operator.manifests import Steps
from fairpool_operator.validate.causes import Cause, Fault, cause
from fairpool_operator.validate.shape import unknown_fields
from fairpool_operator.validate.values import is_instant

_TEXT: Final[Schema] = {"type": "string"}
_INSTANT: Final[Schema] = {"type": "string", "format": "date-time"}
_NUMBER: Final[Schema] = {"type": "integer"}
_TRUTH: Final[Schema] = {"type": "boolean"}
_TEXTS: Final[Schema] = {"type": "object", "additionalProperties": _TEXT}
_ANYTHING: Final[dict[str, Any]] = {}
_ANYTHING.update(additionalProperties=_ANYTHING, items=_ANYTHING)
_OWNER: Final[Schema] = {
    "type": "object",
    "properties": {
        **dict.fromkeys(("apiVersion", "kind", "name", "uid"), _TEXT),
        **dict.fromkeys(("controller", "blockOwnerDeletion"), _TRUTH),
    },
}
_MANAGER: Final[Schema] = {
    "type": "object",
    "properties": {
        **dict.fromkeys(("apiVersion", "fieldsType", "manager", "operation", "subresource"), _TEXT),
        "time": _INSTANT,
        "fieldsV1": _ANYTHING,
    },
}
_METADATA: Final[Schema] = {
    "type": "object",
    "properties": {
        **dict.fromkeys(("name", "generateName", "namespace", "selfLink", "uid", "resourceVersion"), _TEXT),
        **dict.fromkeys(("creationTimestamp", "deletionTimestamp"), _INSTANT),
        **dict.fromkeys(("generation", "deletionGracePeriodSeconds"), _NUMBER),
        **dict.fromkeys(("labels", "annotations"), _TEXTS),
        "finalizers": {"type": "array", "items": _TEXT},
        "ownerReferences": {"type": "array", "items": _OWNER},
        "managedFields": {"type": "array", "items": _MANAGER},
    },
}
_TYPES: Final = {"array": list, "boolean": bool, "integer": int, "object": dict, "string": str}

_LABEL: Final = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN: Final = re.compile(rf"{_LABEL}(\.{_LABEL})*")
_NAMESPACE: Final = re.compile(_LABEL)
_KEY: Final = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?")
_API_VERSION: Final = re.compile(r"([^/]*/)?[^/]+", re.DOTALL)
_KEY_IN_WORDS: Final = (
    "must be at most 63 letters, digits and - _ . with a letter or digit at either end, with a DNS name and / before "
    "it or not"
)
_CORE_FINALIZERS: Final = frozenset({"foregroundDeletion", "kubernetes", "orphan"})
_MOST_BYTES_OF_ANNOTATIONS: Final = 256 * 1024


def unknown_metadata(metadata: Any) -> Iterator[Steps]:
    """The fields that metadata does not have."""
    return unknown_fields(_METADATA, metadata, ("metadata",))


def check_types(metadata: Any) -> Iterator[Cause]:
    """Why metadata cannot be read."""
    yield from _types(_METADATA, metadata, ("metadata",))


def check_metadata(metadata: Mapping[str, Any]) -> Iterator[Cause]:
    """What is wrong with metadata that can be read, its namespace filled in."""
    yield from _names(metadata)
    for key, value in (metadata.get("labels") or {}).items():
        yield from _key(key, ("metadata", "labels"))
        if value and not (_KEY.fullmatch(value) and len(value) <= 63):
            yield cause(
                ("metadata", "labels"),
                Fault.INVALID,
                f"the value of {key} must be at most 63 letters, digits and - _ . with a letter or digit at either end",
            )
    annotations = metadata.get("annotations") or {}
    for key in annotations:
        yield from _key(key.lower(), ("metadata", "annotations"))
    if sum(len(text.encode()) for item in annotations.items() for text in item if text) > _MOST_BYTES_OF_ANNOTATIONS:
        detail = f"may not be more than {_MOST_BYTES_OF_ANNOTATIONS} bytes"
        yield cause(("metadata", "annotations"), Fault.TOO_LONG, detail)
    yield from _finalizers(metadata.get("finalizers") or ())
    yield from _owners(metadata.get("ownerReferences") or ())


def check_core_metadata(metadata: Mapping[str, Any]) -> Iterator[Cause]:
    """What is asked beyond that of Kubernetes' own kinds."""
    if (generation := metadata.get("generation") or 0) < 0:
        yield cause(("metadata", "generation"), Fault.INVALID, "must be greater than or equal to 0", generation)
    for number, finalizer in enumerate(metadata.get("finalizers") or ()):
        if "/" not in (finalizer or "") and finalizer not in _CORE_FINALIZERS:
            detail = "name is neither a standard finalizer name nor is it fully qualified"
            yield cause(("metadata", "finalizers", number), Fault.INVALID, detail)


def name_of(metadata: Mapping[str, Any], number: int = 0) -> str:
    """What the resource is called, or would be; `number` stands for what the server puts behind a generateName."""
    generated: str = metadata.get("generateName") or ""
    return metadata.get("name") or (generated and f"{generated[:58]}{number:05}")


def new_name(metadata: Mapping[str, Any], numbers: Iterator[int], is_taken: Callable[[str], bool]) -> str:
    """A name such as the server would make for a resource that leaves it to it: nothing else is called so."""
    return next(name for number in numbers if not is_taken(name := name_of(metadata, number)))


def _names(metadata: Mapping[str, Any]) -> Iterator[Cause]:
    words = "lower-case letters, digits and '-', with a letter or digit at either end"
    name, generated, namespace = name_of(metadata), metadata.get("generateName") or "", metadata.get("namespace") or ""
    if not name:
        yield cause(("metadata", "name"), Fault.REQUIRED, "name or generateName is required")
    if len(generated) > 1 and generated.endswith("-"):
        generated = f"{generated[:-2]}a"  # so the server looks at it, whatever is before the dash
    for field, given in (("generateName", generated), ("name", name)):
        if given and not (_SUBDOMAIN.fullmatch(given) and len(given) <= 253):
            detail = f"must be at most 253 {words}; parts of it may be parted by '.'"
            yield cause(("metadata", field), Fault.INVALID, detail)
    if not _NAMESPACE.fullmatch(namespace) or len(namespace) > 63:
        yield cause(("metadata", "namespace"), Fault.INVALID, f"must be at most 63 {words}")


def _finalizers(finalizers: Sequence[str]) -> Iterator[Cause]:
    path = ("metadata", "finalizers")
    for finalizer in finalizers:
        if not _is_key(finalizer or ""):
            yield cause(path, Fault.INVALID, f"each {_KEY_IN_WORDS}")
    if {"orphan", "foregroundDeletion"} <= set(finalizers):
        yield cause(path, Fault.INVALID, "finalizer orphan and foregroundDeletion cannot be both set")


def _owners(given: Sequence[Mapping[str, Any] | None]) -> Iterator[Cause]:
    path = ("metadata", "ownerReferences")
    owners: list[Mapping[str, Any]] = []
    for each in given:
        owner = {field: value for field, value in (each or {}).items() if value is not None and value != ""}
        if owner not in owners:  # the server takes equal ones for one before it looks at them
            owners.append(owner)
    for number, one in enumerate(owners):
        for field in ("apiVersion", "kind", "name", "uid"):
            if field not in one:
                yield cause((*path, number, field), Fault.REQUIRED)
        version = one.get("apiVersion")
        if version is None:
            continue
        if not _API_VERSION.fullmatch(version):
            yield cause((*path, number, "apiVersion"), Fault.INVALID, "must be <group>/<version> or <version>")
        elif version.removeprefix("/") == "v1" and one.get("kind") == "Event":
            yield cause((*path, number), Fault.INVALID, "/v1, Kind=Event is disallowed from being an owner")
    if sum(one.get("controller", False) for one in owners) > 1:
        yield cause(path, Fault.INVALID, "Only one reference can have Controller set to true")


def _key(key: str, path: Steps) -> Iterator[Cause]:
    if not _is_key(key):
        yield cause(path, Fault.INVALID, f"{key} {_KEY_IN_WORDS}")


def _is_key(key: str) -> bool:
    prefix, slash, name = key.rpartition("/")
    is_prefixed = not slash or (_SUBDOMAIN.fullmatch(prefix) and len(prefix) <= 253)
    return bool(is_prefixed and _KEY.fullmatch(name) and len(name) <= 63)


def _types(schema: Schema, value: Any, path: Steps) -> Iterator[Cause]:
    wanted = schema.get("type")
    if value is None or wanted is None:
        return
    is_truth = isinstance(value, bool) and wanted != "boolean"
    if is_truth or not isinstance(value, _TYPES[wanted]):
        remedy = ": put it in quotes" if wanted == "string" and isinstance(value, bool | int | float) else ""
        yield cause(path, Fault.INVALID, f"must be of type {wanted}{remedy}")
    elif isinstance(value, str) and schema.get("format") and not is_instant(value):
        yield cause(path, Fault.INVALID, "must be a moment such as 2026-12-31T23:59:59Z")
    elif isinstance(value, dict):
        for name, item in value.items():
            inner = schema.get("properties", {}).get(name, schema.get("additionalProperties", {}))
            yield from _types(inner, item, (*path, name))
    elif isinstance(value, list):
        for number, item in enumerate(value):
            yield from _types(schema["items"], item, (*path, number))
