"""The file behind the decision log: lines are gathered and written a few times a second, not one by one."""

from __future__ import annotations

import asyncio
from pathlib import Path

_FLUSH_SECONDS = 0.2


class LogFile:
    """Appends to a new file; whatever was written is on its way to disk within a fraction of a second."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("wb", buffering=1 << 16)
        self._loop = asyncio.get_running_loop()
        self._flush_due: asyncio.TimerHandle | None = None

    def write(self, line: bytes) -> None:
        """Take one line."""
        self._file.write(line)
        if self._flush_due is None:
            self._flush_due = self._loop.call_later(_FLUSH_SECONDS, self._flush)

    def close(self) -> None:
        """Write what is left."""
        if self._flush_due is not None:
            self._flush_due.cancel()
        self._file.close()

    def _flush(self) -> None:
        self._flush_due = None
        self._file.flush()
