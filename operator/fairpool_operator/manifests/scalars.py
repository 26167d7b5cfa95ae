"""What kubectl takes a text without quotes for: a truth, a number, nothing, or a text.

That is YAML 1.1 without its dates and base 60: `yes` is a truth, `2026-12-31` and `1:30` are texts.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Final

import yaml

from fairpool_operator.errors import NoResource

PLAIN: Final = "plain"
"""The tag of a text without quotes."""

_TAG: Final = "tag:yaml.org,2002:"
_INT: Final = re.compile(r"[-+]?(0[bB][01]+|0[oO]?[0-7]+|0[xX][0-9a-fA-F]+|0|[1-9][0-9]*)")
_OCTAL: Final = re.compile(r"[-+]?0[0-7]+")
_FLOAT: Final = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_BETWEEN_DIGITS: Final = re.compile(r"(?<=[0-9])_(?=[0-9])")
_WORDS: Final[Mapping[str, bool | None]] = {
    form: value
    for word, value in (
        *dict.fromkeys(("y", "yes", "true", "on"), True).items(),
        *dict.fromkeys(("n", "no", "false", "off"), False).items(),
        *dict.fromkeys(("", "~", "null"), None).items(),
    )
    for form in (word, word.capitalize(), word.upper())
}
_NOT_IN_JSON: Final = frozenset(
    {sign + form for sign in ("", "+", "-") for form in (".inf", ".Inf", ".INF")} | {".nan", ".NaN", ".NAN"}
)
_KINDS: Final[Mapping[str, tuple[type, ...]]] = {
    "bool": (bool,),
    "float": (int, float),
    "int": (int,),
    "null": (type(None),),
}


def scalar(node: yaml.Node) -> bool | int | float | str | None:
    """What a text is: a truth, a number, nothing, or a text."""
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
    if text in _NOT_IN_JSON:
        raise NoResource(node.start_mark.line + 1, "holds a number that JSON does not have")
    number = _number(text) if text[:1] in tuple("+-.0123456789") else None
    return text if number is None else number


def _number(text: str) -> int | float | None:
    """The number that a text is, as JSON carries it: whole however it was written, and a float beyond 64 bits.

    What is too large even for a float is a text.
    """
    plain = _BETWEEN_DIGITS.sub("", text) if text.startswith(".") else text.replace("_", "")
    try:
        if _INT.fullmatch(plain):
            whole = int(plain, 8) if _OCTAL.fullmatch(plain) else int(plain, 0)
            if -(2**63) <= whole < 2**64:
                return whole if whole < 2**63 else float(whole)
        found = float(plain) if _FLOAT.fullmatch(plain) else math.inf
    except ValueError:  # more digits than Python makes an int of
        found = float(plain)
    if math.isinf(found):
        return None
    return int(found) if found.is_integer() and -(2**63) <= found < 2**63 else found


def is_merge(node: yaml.Node) -> bool:
    """Whether it is the name under which another mapping is merged in."""
    return node.tag == _TAG + "merge" or (node.tag == PLAIN and node.value == "<<")
