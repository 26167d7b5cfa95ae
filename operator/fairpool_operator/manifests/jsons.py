"""What JSON may do and YAML may not, for kubectl reads both: several objects in a row, and characters in two halves."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Final

_SPACE: Final = re.compile(r"\s*")
_ESCAPE: Final = re.compile(
    r"\\(?:u(?P<high>[dD][89abAB][0-9a-fA-F]{2})\\u(?P<low>[dD][c-fC-F][0-9a-fA-F]{2})|.)", re.DOTALL
)
"""Whatever is behind a backslash, so that one that is escaped itself begins nothing."""


def json_parts(text: str) -> Sequence[tuple[int, str]]:
    """The objects of a text that is JSON, as YAML, each with the number of lines before it; none if it is not."""
    decoder = json.JSONDecoder()
    parts: list[tuple[int, str]] = []
    begin, line, counted = _after_space(text, 0), 0, 0
    while begin < len(text):
        if text[begin] != "{":
            return ()
        try:
            _, end = decoder.raw_decode(text, begin)
        except (ValueError, RecursionError):
            return ()
        line, counted = line + text.count("\n", counted, begin), begin
        parts.append((line, _ESCAPE.sub(_whole, text[begin:end])))
        begin = _after_space(text, end)
    return parts


def _after_space(text: str, begin: int) -> int:
    found = _SPACE.match(text, begin)
    assert found is not None, "there may be none"
    return found.end()


def _whole(found: re.Match[str]) -> str:
    """One escape of a character that was written as the two halves by which UTF-16 has it."""
    if found["high"] is None:
        return found[0]
    character = (bytes.fromhex(found["high"]) + bytes.fromhex(found["low"])).decode("utf-16-be")
    return f"\\U{ord(character):08x}"
