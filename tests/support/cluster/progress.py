"""Shows that a long build goes on: what the Go compiler prints, counted rather than repeated."""

from __future__ import annotations

import re
import time
from typing import Final, TextIO

_ON_A_TERMINAL: Final = 0.2
_IN_A_LOG: Final = 20.0


class Progress:
    """Counts modules fetched and packages compiled; one line, rewritten on a terminal, or one now and then in a log."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._terminal = out.isatty()
        self._began = self._shown = time.monotonic()
        self._modules = self._packages = 0

    def reads(self, line: str) -> bool:
        """Take a line of the compiler's into account; false for one that is no progress, but something to be read."""
        if line.startswith("go: downloading "):
            self._modules += 1
        elif re.fullmatch(r"[\w.~+-]+(/[\w.~+-]+)*\s*", line):
            self._packages += 1
        else:
            return False
        if time.monotonic() - self._shown > (_ON_A_TERMINAL if self._terminal else _IN_A_LOG):
            self._show()
        return True

    def end(self) -> None:
        """Show the last count."""
        self._show()
        if self._terminal:
            self._out.write("\n")

    def _show(self) -> None:
        self._shown = time.monotonic()
        counts = f"  {self._shown - self._began:4.0f} s: packages compiled: {self._packages:,}"
        if self._modules:
            counts += f", modules fetched: {self._modules}"
        self._out.write(f"\r{counts}" if self._terminal else f"{counts}\n")
        self._out.flush()
