"""What is written to sockets while the event loop goes round once, gathered and written together.

A write wakes whoever waits for it, and where that one's core sleeps this costs ten times what the write itself does;
but of writes that follow one another at once only the first finds it asleep. A request costs a quarter less processor
time for it with 64 connections (160 us → 120, `docs/performance.md`). Where only one thing is going on there is nothing
to gather, and it is written at once.

What always holds: nothing waits longer than until the loop has gone round once, and nothing that a writer was given is
left behind by an error of another.
"""

from __future__ import annotations

import asyncio
from typing import Protocol


class Writer(Protocol):
    """Has something to write to its connection."""

    def write_out(self) -> None:
        """Write all of it, if the connection is still there."""


class Writes:
    """What is to be written on one event loop."""

    __slots__ = ("_came", "_together", "_writers")

    def __init__(self) -> None:
        self._came = 0
        self._together = 0
        self._writers: list[Writer] = []

    def came(self) -> None:
        """Something came from a socket, for which most likely something will be written."""
        self._came += 1

    def add(self, writer: Writer) -> None:
        """Have a writer write, at once where nothing else is going on."""
        if self._came <= 1 and self._together <= 1 and not self._writers:
            self._came = 0
            writer.write_out()
        else:
            self.gather(writer)

    def gather(self, writer: Writer) -> None:
        """Have a writer write when the loop has gone round, for whoever cannot know yet what else comes."""
        if not self._writers:
            asyncio.get_running_loop().call_soon(self._write)
        self._writers.append(writer)

    def _write(self) -> None:
        self._came, self._together = 0, len(self._writers)
        writers, self._writers = iter(self._writers), []
        try:
            for writer in writers:
                writer.write_out()
        finally:
            for writer in writers:
                self.gather(writer)
