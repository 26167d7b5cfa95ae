"""Values of Secrets as they are in files, and what of them the API server would not take.

What always holds: a value is in no text about it.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator, Mapping
from typing import Any, Final

from fairpool_operator.manifests import Steps

_LINE_ENDS: Final = str.maketrans("", "", "\r\n")
"""What the server, too, passes over in base64."""


def values_of(secret: Mapping[str, Any]) -> dict[str, bytes]:
    """The values of a Secret in which `problems_of` finds nothing; those in `stringData` count, as on a server."""
    data = {key: base64.b64decode(value or "") for key, value in (secret.get("data") or {}).items()}
    return data | {key: value.encode() for key, value in (secret.get("stringData") or {}).items() if value is not None}


def problems_of(secret: Mapping[str, Any]) -> Iterator[tuple[Steps, str]]:
    """Why a Secret cannot be read, if so."""
    if "sops" in secret:
        yield ("sops",), "its values are encrypted: decrypt it to a file that is in no repository, and add that with -f"
        return
    for field in ("data", "stringData"):
        values = secret.get(field)
        if values is None:
            continue
        if not isinstance(values, dict):
            yield (field,), "has to be a mapping"
            continue
        for key, value in values.items():
            if value is not None and not isinstance(value, str):
                yield (field, key), "has to be text: put it in quotes"
            elif field == "data" and value and not _is_base64(value):
                yield (field, key), "has to be in base64; stringData takes the value as it is"


def _is_base64(value: str) -> bool:
    try:
        base64.b64decode(value.translate(_LINE_ENDS), validate=True)
    except (binascii.Error, ValueError):
        return False
    return True
