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
from fairpool_gateway.usage.answers import MISREAD, Usage, Verdict, Whole, says_something
from fairpool_gateway.usage.reading import Reading

KEPT: Final = 1 << 16
"""How much of an answer is kept, for as long as it comes, and up to which length it is decoded as a whole."""

_LONGEST_USAGE = 1 << 14

_USAGE = re.compile(rb'"usage"\s*:\s*(?=\{)')
_FINISH_REASON = re.compile(rb'"finish_reason"\s*:\s*"([a-z]+)"')

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
    verdict = Verdict()
    for reason in (whole.status, whole.stop_reason, *(choice.finish_reason for choice in whole.choices)):
        verdict.look_at(reason)
    return Reading(_used(whole.usage), 0, verdict.failed or says_something(whole.error), verdict.aborted)


def _read_end(end: bytes) -> Reading:
    verdict = Verdict()
    for match in _FINISH_REASON.finditer(end):
        verdict.look_at(match[1].decode())
    used = None
    for match in _USAGE.finditer(end):
        used = _used(_usage_at(end, match.end())) or used
    return Reading(used, 0, verdict.failed, verdict.aborted)


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
