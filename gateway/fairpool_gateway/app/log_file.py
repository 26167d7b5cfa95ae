"""The file behind the decision log: lines are gathered and written a few times a second, not one by one.

What always holds: `write` raises nothing. A disk that is full ends the log, and says so once; it never ends a request.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable
from pathlib import Path

_FLUSH_SECONDS = 0.2

log = logging.getLogger(__name__)


class LogFile:
    """Appends to a new file; whatever was written is on its way to disk within a fraction of a second."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = path.open("wb", buffering=1 << 16)
        self._loop = asyncio.get_running_loop()
        self._flush_due: asyncio.TimerHandle | None = None
        self._ended = False

    def write(self, line: bytes) -> None:
        """Take one line."""
        if self._ended:
            return
        self._try(lambda: self._file.write(line))
        if self._flush_due is None:
            self._flush_due = self._loop.call_later(_FLUSH_SECONDS, self._flush)

    def close(self) -> None:
        """Write what is left."""
        if self._flush_due is not None:
            self._flush_due.cancel()
        if not self._ended:
            self._try(self._file.close)

    def _flush(self) -> None:
        self._flush_due = None
        if not self._ended:
            self._try(self._file.flush)

    def _try(self, act: Callable[[], object]) -> None:
        try:
            act()
        except OSError as error:
            log.error("the decision log ends here, %s cannot be written: %s", self._path, error.strerror)  # noqa: TRY400
            self._ended = True
            with contextlib.suppress(OSError):
                self._file.close()
