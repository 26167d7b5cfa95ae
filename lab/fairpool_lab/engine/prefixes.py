"""The prefix cache of an engine: KV of how prompts begin, kept for prompts that begin alike.

A prompt's beginning is told in blocks of `block_tokens` tokens. Each block has a name that stands for the whole prompt
up to the block's end, so equal names mean equal beginnings. A block that a running sequence uses is held; one that
nobody uses stays idle while there is room, and the one that was used least recently goes first. A sequence gives its
blocks back from the last to the first, so a beginning outlives what follows it.

What always holds: a block is here once, however many hold it; it is idle exactly while nobody does; what is held is
never dropped. Whoever owns the memory counts it: `held` blocks are in use, `shrink` makes room among the idle.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence

from fairpool_lab.errors import SettingsInvalid


class PrefixCache:
    """The blocks of one engine, by their names."""

    def __init__(self, block_tokens: int) -> None:
        if block_tokens < 1:
            raise SettingsInvalid(f"block_tokens must be positive, not {block_tokens}")
        self.block_tokens = block_tokens
        self._holders: dict[int, int] = {}
        self._idle: OrderedDict[int, None] = OrderedDict()

    @property
    def held(self) -> int:
        """How many blocks are in use."""
        return len(self._holders)

    @property
    def idle(self) -> int:
        """How many blocks are kept although nobody uses them."""
        return len(self._idle)

    def found(self, blocks: Sequence[int]) -> int:
        """How many of the blocks, from the first on without a gap, are here."""
        for number, block in enumerate(blocks):
            if block not in self._holders and block not in self._idle:
                return number
        return len(blocks)

    def idle_among(self, blocks: Sequence[int]) -> int:
        """How many of the blocks are here and in nobody's use."""
        return sum(block in self._idle for block in blocks)

    def take(self, blocks: Sequence[int]) -> None:
        """Use blocks that are here."""
        for block in blocks:
            self._idle.pop(block, None)
            self._holders[block] = self._holders.get(block, 0) + 1

    def add(self, block: int) -> bool:
        """Keep a block that was just computed, in the use of who computed it; False if it is here already."""
        if block in self._holders or block in self._idle:
            return False
        self._holders[block] = 1
        return True

    def give_back(self, blocks: Sequence[int]) -> None:
        """Use blocks no longer."""
        for block in reversed(blocks):
            self._holders[block] -= 1
            if not self._holders[block]:
                del self._holders[block]
                self._idle[block] = None

    def shrink(self, most: int) -> None:
        """Keep at most so many idle blocks."""
        while len(self._idle) > most:
            self._idle.popitem(last=False)
