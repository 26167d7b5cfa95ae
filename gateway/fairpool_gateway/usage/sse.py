"""Splitting a stream into server-sent events, by the rules of the WHATWG, wherever its bytes are cut.

Lines end with LF, CR LF or CR; an event ends with an empty line; its data are its `data` lines, joined. Only the
line that is not yet complete is held, in the pieces it came in. An event with a line, or data, beyond `LONGEST` is
dropped, however it came.
"""

from __future__ import annotations

from typing import Final

LONGEST: Final = 1 << 20


class EventSplitter:
    """Turns pieces of a stream into the data of its events."""

    __slots__ = ("_after_cr", "_data", "_data_length", "_line", "_line_length", "_spoiled")

    def __init__(self) -> None:
        self._line: list[bytes] = []
        self._line_length = 0
        self._after_cr = False
        self._data: list[bytes] = []
        self._data_length = 0
        self._spoiled = False

    def feed(self, data: bytes) -> list[bytes]:
        """The data of the events that are complete now."""
        if self._after_cr and data:
            self._after_cr = False
            if data.startswith(b"\n"):
                data = data[1:]
        if self._line_length:
            if b"\n" not in data and b"\r" not in data:
                self._hold(data)
                return []
            data = self._held() + data
        lines = data.splitlines()
        if not data.endswith((b"\n", b"\r")):
            if lines:
                self._hold(lines.pop())
        else:
            self._after_cr = data.endswith(b"\r")
        return self._take(lines)

    def finish(self) -> list[bytes]:
        """The data of an event that the end of the stream left open."""
        return self._take([self._held(), b""])

    def _hold(self, piece: bytes) -> None:
        """Hold a piece of an incomplete line, unless the line is too long already: then its length will do."""
        self._line_length += len(piece)
        if self._line_length <= LONGEST:
            self._line.append(piece)

    def _held(self) -> bytes:
        """The line so far, which is held no longer."""
        if self._line_length > LONGEST:
            self._spoiled = True
            held = b":"
        else:
            held = b"".join(self._line)
        self._line.clear()
        self._line_length = 0
        return held

    def _take(self, lines: list[bytes]) -> list[bytes]:
        events: list[bytes] = []
        for line in lines:
            if not line:
                if self._data:
                    if not self._spoiled:
                        events.append(self._data[0] if len(self._data) == 1 else b"\n".join(self._data))
                    self._data.clear()
                    self._data_length = 0
                self._spoiled = False
            elif len(line) > LONGEST:
                self._spoiled = True
            elif line.startswith(b"data:") and not self._spoiled:
                self._data.append(line[5:])
                self._data_length += len(line)
                self._spoiled = self._data_length > LONGEST
        return events
