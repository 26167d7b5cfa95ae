"""Reading usage out of an answer that is one JSON object.

A small answer is kept and decoded. Of a large one only the end is kept, where engines put `usage`. The search there
cannot be fooled by what a model wrote: inside a string each quote is escaped, so `"usage":` is always a field.

llama.cpp tells the tokens of one choice only where several were asked for. That looks like any other usage and is
taken for what it says.
"""

from __future__ import annotations

import json
import re
from typing import Final

import msgspec

from fairpool_gateway.cost import Used
from fairpool_gateway.usage.answers import MISREAD, Usage, Whole, gave_up, says_something
from fairpool_gateway.usage.reading import Reading

KEPT: Final = 1 << 18
"""How much of an answer is kept, and up to which length it is decoded as a whole."""

_LONGEST_USAGE = 1 << 14

_USAGE = re.compile(rb'"usage"\s*:\s*(?=\{)')
_GAVE_UP = re.compile(rb'"finish_reason"\s*:\s*"([a-z]+)"')

_decode = msgspec.json.Decoder(Whole).decode
_decode_prefix = json.JSONDecoder().raw_decode


class WholeReader:
    """Reads one answer of any API."""

    __slots__ = ("_end", "_length")

    def __init__(self) -> None:
        self._end = bytearray()
        self._length = 0

    def feed(self, data: bytes) -> None:
        """Keep the end of the answer."""
        self._end += data
        self._length += len(data)
        if len(self._end) > 2 * KEPT:
            del self._end[:-KEPT]

    def finish(self) -> Reading:
        """What the answer said, after its last byte."""
        return _read_whole(self._end) if self._length <= KEPT else _read_end(bytes(self._end[-KEPT:]))


def _read_whole(answer: bytearray) -> Reading:
    try:
        whole = _decode(answer)
    except MISREAD:
        return Reading(None, 0, failed=False)
    failed = says_something(whole.error) or gave_up(whole.status) or gave_up(whole.stop_reason)
    return Reading(_used(whole.usage), 0, failed or any(gave_up(choice.finish_reason) for choice in whole.choices))


def _read_end(end: bytes) -> Reading:
    failed = any(gave_up(match[1].decode()) for match in _GAVE_UP.finditer(end))
    used = None
    for match in _USAGE.finditer(end):
        used = _used(_usage_at(end, match.end())) or used
    return Reading(used, 0, failed)


def _usage_at(end: bytes, at: int) -> Usage | None:
    """The object that begins there, if it is a usage."""
    try:
        found, _ = _decode_prefix(end[at : at + _LONGEST_USAGE].decode(errors="replace"))
        return msgspec.convert(found, Usage)
    except (ValueError, RecursionError):
        return None


def _used(usage: Usage | None) -> Used | None:
    tokens = None if usage is None else usage.tokens()
    return None if tokens is None else Used(*tokens)
