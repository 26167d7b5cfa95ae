"""Reading an answer that is compressed, in a copy: what passes stays compressed."""

from __future__ import annotations

import zlib
from typing import Final

from fairpool_gateway.usage.reading import Reading, UsageReader

MOST: Final = 1 << 25
"""How much is inflated of one answer; beyond it, nothing is known of it."""

_STEP = 1 << 16

_EITHER_FORMAT = zlib.MAX_WBITS | 32


class Inflated:
    """Hands the inflated bytes on to another reader; gives up on what cannot be inflated, or is too much."""

    __slots__ = ("_inflater", "_left", "_reader")

    def __init__(self, reader: UsageReader) -> None:
        self._reader = reader
        self._inflater = zlib.decompressobj(_EITHER_FORMAT)
        self._left = MOST

    def feed(self, data: bytes) -> None:
        """Inflate the next bytes, a step at a time."""
        while self._left > 0:
            try:
                piece = self._inflater.decompress(data, _STEP)
            except zlib.error:
                self._left = 0
                return
            self._left -= len(piece)
            self._reader.feed(piece)
            data = self._inflater.unconsumed_tail
            if len(piece) < _STEP:
                return

    def finish(self) -> Reading:
        """What the answer said, if all of it could be read."""
        return self._reader.finish() if self._left > 0 else Reading(None, 0, failed=False)
