"""How a wrong value may be repeated to its author: on one line, and never so that a credential could be in it."""

from __future__ import annotations

from typing import Final

_LONGEST: Final = 20
"""A longer text might be a secret that got into the wrong place."""

_KINDS: Final = {type(None): "nothing", dict: "a mapping", list: "a list"}


def shown(value: object) -> str:
    """The value in a message that says `not ...`."""
    match value:
        case bool():
            return "true" if value else "false"
        case int() if value.bit_length() > 64:
            return "a number too long to show"
        case str() if len(value) > _LONGEST:
            return f"a text of {len(value)} characters"
        case str() | int() | float():
            return ascii(value)
        case _:
            return _KINDS.get(type(value), f"a {type(value).__name__}")
