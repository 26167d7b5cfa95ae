"""How much of the answers may wait here for readers that are slower than their endpoints.

An endpoint's slot is worth more than memory: an answer that fits is read to its end at the endpoint's own pace, so
that the slot comes free, however slowly its tenant takes it. Memory is bounded all the same, for each answer and
for all of them, and beyond that the endpoint is held back.
"""

from __future__ import annotations

from typing import Final

HIGH_WATER: Final = 1 << 20
"""Bytes of one answer that may wait; one segment may come on top."""

MOST_IN_ALL: Final = 64 << 20
"""Bytes of all answers that may wait, but for `ALWAYS` of each."""

ALWAYS: Final = 64 << 10
"""Bytes of one answer that may wait however much others hold, so that none of them stands still."""


class Buffers:
    """What waits of all answers of one client; `held` counts its bytes."""

    __slots__ = ("held",)

    def __init__(self) -> None:
        self.held = 0

    def have_room(self, held: int) -> bool:
        """Whether an answer of which so many bytes wait may go on."""
        return held <= ALWAYS or (held <= HIGH_WATER and self.held <= MOST_IN_ALL)
