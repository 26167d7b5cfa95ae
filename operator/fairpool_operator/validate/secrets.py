"""Secrets as they are in files: their values, and why the API server would refuse one.

What always holds: a value is in no text about it.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from fairpool_operator.definitions import Schema
from fairpool_operator.manifests import Steps
from fairpool_operator.validate.causes import Cause, Fault, Key, cause
from fairpool_operator.validate.metadata import check_core_metadata, check_metadata, check_types, unknown_metadata
from fairpool_operator.validate.secret_types import check_type
from fairpool_operator.validate.shape import unknown_fields

_VALUES: Final = ("data", "stringData")
_ANY: Final[Schema] = {}
_MAPPING: Final[Schema] = {"additionalProperties": _ANY}
_FIELDS: Final[Schema] = {
    "properties": {"immutable": _ANY, "type": _ANY, "data": _MAPPING, "stringData": _MAPPING},
}
_KEY: Final = re.compile(r"[-._a-zA-Z0-9]+")
_KEY_IN_WORDS: Final = (
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or "
    "'key-name', regex used for validation is '[-._a-zA-Z0-9]+')"
)
_TYPE: Final = "Opaque"
"""That of a Secret which says none."""
_LONGEST_KEY: Final = 253
_MOST_BYTES: Final = 1 << 20
_LINE_ENDS: Final = str.maketrans("", "", "\r\n")
"""What the server, too, passes over in base64."""


def values_of(secret: Mapping[str, Any]) -> dict[str, bytes]:
    """The values of a Secret that can be read; those in `stringData` count, as on a server."""
    data = {key: base64.b64decode(value or "") for key, value in (secret.get("data") or {}).items()}
    return data | {key: value.encode() for key, value in (secret.get("stringData") or {}).items() if value is not None}


def check_secret(secret: Mapping[str, Any], before: Mapping[str, Any] | None = None) -> list[Cause]:
    """Why the server would refuse a Secret that is in a namespace; of one that cannot even be read nothing more.

    Args:
        secret: the Secret as it is written.
        before: as what it is stored, if it is.
    """
    metadata = secret.get("metadata")
    unknown = (*unknown_metadata(metadata), *unknown_fields(_FIELDS, secret))
    causes = [Cause(path, "unknown field") for path in unknown]
    causes += [*check_types(metadata), *_unread(secret)]
    if causes:
        return causes
    known = metadata or {}
    return [*check_metadata(known), *check_core_metadata(known), *_kept(secret), *_edited(secret, before or {})]


def _unread(secret: Mapping[str, Any]) -> Iterator[Cause]:
    if not isinstance(secret.get("immutable"), bool | None):
        yield Cause(("immutable",), "must be of type bool: true or false, not in quotes")
    if not isinstance(secret.get("type"), str | None):
        yield Cause(("type",), "must be of type string: put it in quotes")
    for field in _VALUES:
        values = secret.get(field)
        if values is not None and not isinstance(values, dict):
            yield Cause((field,), "has to be a mapping")
            continue
        for key, value in (values or {}).items():
            path: Steps = (field, Key(key))
            if value is not None and not isinstance(value, str):
                yield Cause(path, "must be of type string: put it in quotes")
            elif field == "data" and value and not _is_base64(value):
                yield Cause(path, "has to be in base64; stringData takes the value as it is")


def _kept(secret: Mapping[str, Any]) -> Iterator[Cause]:
    """What is wrong with what the server would keep, where `stringData` is in `data`."""
    kept = {**dict.fromkeys((*(secret.get("data") or ()), *(secret.get("stringData") or ())), b""), **values_of(secret)}
    for key in kept:
        for detail in _wrong_with(key):
            yield _placed(cause(("data", Key(key)), Fault.INVALID, detail), secret)
    if sum(map(len, kept.values())) > _MOST_BYTES:
        yield cause(("data",), Fault.TOO_LONG, f"may not be more than {_MOST_BYTES} bytes")
    annotations = (secret.get("metadata") or {}).get("annotations") or {}
    for found in check_type(secret.get("type") or "", annotations, kept):
        yield _placed(found, secret)


def _edited(secret: Mapping[str, Any], before: Mapping[str, Any]) -> Iterator[Cause]:
    """What cannot be changed: the type ever, and the values once `immutable` is true, which it stays."""
    if before and (secret.get("type") or _TYPE) != (before.get("type") or _TYPE):
        yield cause(("type",), Fault.INVALID, "field is immutable")
    if before.get("immutable"):
        fixed = "field is immutable when `immutable` is set"
        if not secret.get("immutable"):
            yield cause(("immutable",), Fault.FORBIDDEN, fixed)
        if values_of(secret) != values_of(before):
            written = next(((field,) for field in _VALUES if secret.get(field)), ())
            yield replace(cause(("data",), Fault.FORBIDDEN, fixed), written=written)


def _wrong_with(key: str) -> Iterator[str]:
    if len(key.encode()) > _LONGEST_KEY:
        yield f"must be no more than {_LONGEST_KEY} characters"
    if not _KEY.fullmatch(key):
        yield _KEY_IN_WORDS
    if key in {".", ".."}:
        yield f"must not be '{key}'"
    elif key.startswith(".."):
        yield "must not start with '..'"


def _placed(found: Cause, secret: Mapping[str, Any]) -> Cause:
    """What is wrong with a value in `data`, at its place in `stringData` where the server would take it from there."""
    *where, key = found.path
    is_in_plain = where == ["data"] and key in (secret.get("stringData") or ())
    return replace(found, written=("stringData", key)) if is_in_plain else found


def _is_base64(value: str) -> bool:
    try:
        base64.b64decode(value.translate(_LINE_ENDS), validate=True)
    except (binascii.Error, ValueError):
        return False
    return True
