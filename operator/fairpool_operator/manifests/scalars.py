"""What kubectl takes a text without quotes for: a truth, a number, nothing, or a text.

That is YAML 1.1 without its dates and base 60: `yes` is a truth, `2026-12-31` and `1:30` are texts.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

import yaml

from fairpool_operator.errors import NoResource

PLAIN: Final = "plain"
"""The tag of a text without quotes."""

_TAG: Final = "tag:yaml.org,2002:"
_INT: Final = re.compile(r"[-+]?(0b[01]+|0o?[0-7]+|0x[0-9a-fA-F]+|0|[1-9][0-9]*)")
_OCTAL: Final = re.compile(r"[-+]?0[0-7]+")
_FLOAT: Final = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_WORDS: Final[Mapping[str, bool | None]] = {
    form: value
    for word, value in (
        *dict.fromkeys(("y", "yes", "true", "on"), True).items(),
        *dict.fromkeys(("n", "no", "false", "off"), False).items(),
        *dict.fromkeys(("", "~", "null"), None).items(),
    )
    for form in (word, word.capitalize(), word.upper())
}
_KINDS: Final[Mapping[str, tuple[type, ...]]] = {
    "bool": (bool,),
    "float": (int, float),
    "int": (int,),
    "null": (type(None),),
}


def scalar(node: yaml.Node) -> bool | int | float | str | None:
    """What a text is: a truth, a number, nothing, or a text; numbers as JSON carries them to the server."""
    text: str = node.value
    if node.tag == PLAIN:
        return _resolved(text, node)
    tag = node.tag.removeprefix(_TAG)
    if tag in {"str", "timestamp", "!"}:
        return text
    value = _resolved(text, node)
    if tag not in _KINDS or not isinstance(value, _KINDS[tag]):
        raise NoResource(node.start_mark.line + 1, "has a tag that is not for it: remove the tag")
    return value


def _resolved(text: str, node: yaml.Node) -> bool | int | float | str | None:
    if text in _WORDS:
        return _WORDS[text]
    if text.lstrip("+-").lower() in {".inf", ".nan"}:
        raise NoResource(node.start_mark.line + 1, "holds a number that JSON does not have")
    plain = text.replace("_", "")
    if plain[:1] not in "+-.0123456789":
        return text
    try:
        if _INT.fullmatch(plain):
            return _as_json(int(plain, 8) if _OCTAL.fullmatch(plain) else int(plain, 0))
        return _as_json(float(plain)) if _FLOAT.fullmatch(plain) else text
    except (ValueError, OverflowError):
        raise NoResource(node.start_mark.line + 1, "holds a number that is too large") from None


def _as_json(number: float) -> int | float:
    """A whole number is one however it was written; beyond 64 bits there are only floats."""
    whole = int(number)
    fits = -(2**63) <= whole < 2**63
    return whole if whole == number and fits else float(number)


def is_merge(node: yaml.Node) -> bool:
    """Whether it is the name under which another mapping is merged in."""
    return node.tag == _TAG + "merge" or (node.tag == PLAIN and node.value == "<<")
