"""Numbers in the bodies of requests: how many answers, and how long one may be, whatever a tenant wrote for it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

import msgspec
from msgspec import Raw

MOST_CHOICES: Final = 16_384
"""More answers than this to one prompt are refused by engines, so they are not counted either."""

MOST_TOKENS: Final = (1 << 31) - 1
"""A `max_tokens` beyond this is no limit."""

_decode_number = msgspec.json.Decoder(int).decode
_decode_number_or_text = msgspec.json.Decoder(int, strict=False).decode


def choices_of(written: Iterable[Raw | bytes]) -> int:
    """How many answers to one prompt: the greatest of these, at least one.

    A number written as text counts too, for some engines accept it.
    """
    choices = 1
    for each in written:
        choices = max(choices, _number(each, _decode_number_or_text))
    return min(choices, MOST_CHOICES)


def limit_of(written: Iterable[Raw | bytes]) -> int | None:
    """The greatest length of one answer: the first of these that is one."""
    for each in written:
        limit = _number(each, _decode_number)
        if 1 <= limit <= MOST_TOKENS:
            return limit
    return None


def _number(written: Raw | bytes, decode: Callable[[Raw | bytes], int]) -> int:
    """A whole number, or 0 where there is none."""
    if not len(written):
        return 0
    try:
        return decode(written)
    except msgspec.DecodeError:
        return 0
