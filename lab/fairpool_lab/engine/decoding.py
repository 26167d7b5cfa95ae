"""Decoding bodies as vLLM does: what cannot be read is refused with the place at which it goes wrong."""

from __future__ import annotations

import re
from typing import Final, TypeVar

import msgspec

from fairpool_lab.errors import Refusal

B = TypeVar("B")

_PATH: Final = re.compile(r" - at `\$\.?(.*)`$")
_MISSING: Final = re.compile(r"missing required field `(.*?)`")
_BYTE: Final = re.compile(r"\(byte (\d+)\)")


def decode(decoder: msgspec.json.Decoder[B], body: bytes) -> B:
    """The body, understood; or the refusal that vLLM would answer."""
    if not body:
        raise _unreadable("missing", "body", "Field required")
    try:
        return decoder.decode(body)
    except msgspec.ValidationError as error:
        message = str(error)
        path = _PATH.search(message)
        location = f"body.{path[1]}" if path and path[1] else "body"
        if missing := _MISSING.search(message):
            raise _unreadable("missing", f"{location}.{missing[1]}", "Field required") from None
        raise _unreadable("type_error", location, _PATH.sub("", message)) from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        byte = _BYTE.search(str(error))
        raise _unreadable("json_invalid", f"body.{byte[1] if byte else len(body)}", "JSON decode error") from None


def _unreadable(kind: str, location: str, message: str) -> Refusal:
    problem = {"type": kind, "loc": location, "msg": message}
    return Refusal(400, f"1 validation error:\n  {problem}", kind="Bad Request", param=location)
