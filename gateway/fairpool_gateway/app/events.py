"""What is passed on of a stream of events, so that one which breaks can still end in order.

Only whole events go out. The beginning of one, which no client could use yet, is held until its end has come; if the
endpoint breaks off there, an error event takes its place, and every client reads it as one. No byte is changed, added
or left out of a stream that does not break. An event longer than `LONGEST` is not held, but passed on as it comes.
"""

from __future__ import annotations

from typing import Final

from fairpool_gateway.app.headers import RawHeaders, first

LONGEST: Final = 64 << 10

_ENDS = (b"\n\n", b"\n\r\n", b"\r\r")


def can_be_appended_to(headers: RawHeaders) -> bool:
    """Whether an answer with these headers is a stream of events, neither compressed nor of a length told before."""
    if first(headers, b"content-length") is not None:
        return False
    media_type = (first(headers, b"content-type") or b"").partition(b";")[0].strip().lower()
    encoding = (first(headers, b"content-encoding") or b"identity").strip().lower()
    return media_type == b"text/event-stream" and encoding == b"identity"


class WholeEvents:
    """One stream on its way."""

    __slots__ = ("_held", "_torn")

    def __init__(self) -> None:
        self._held = b""
        self._torn = False

    def take(self, data: bytes) -> bytes:
        """The whole events that the next bytes complete; perhaps none."""
        if self._held:
            data = self._held + data
        end = len(data) if data.endswith(_ENDS) else _end_of_last(data)
        self._torn = len(data) - end > LONGEST or (self._torn and not end)
        if self._torn:
            end = len(data)
        self._held = data[end:]
        return data[:end]

    def last(self, data: bytes) -> bytes:
        """All that is left, with the last bytes of a stream that came to its end."""
        return self._held + data

    def broken(self, error: bytes) -> bytes:
        """What ends a stream that broke: an event that tells of it."""
        return b"\n\n" + error if self._torn else error


def _end_of_last(data: bytes) -> int:
    return max((at + len(end) for end in _ENDS if (at := data.rfind(end)) >= 0), default=0)
