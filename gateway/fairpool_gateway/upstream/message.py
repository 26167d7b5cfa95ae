"""One answer of an endpoint, read from its bytes as they come, however they are cut.

Pure: bytes in, facts out. The framing is taken off (chunked, length, until close) and nothing else: a
content-encoding stays, headers keep their order, repeats and values. Interim answers (1xx) and trailers are passed
over. What the endpoint can make us hold beside the body is bounded by `MAX_HEAD`.
"""

from __future__ import annotations

from typing import Final

from httptools import HttpParserError, HttpResponseParser

from fairpool_gateway.errors import UpstreamBroken

MAX_HEAD: Final = 64 * 1024
"""Bytes of headers, and of anything else that comes without a byte of the body."""


class Message:
    """An answer in the making. The `on_…` methods are the parser's callbacks.

    Attributes:
        status: 0 until the final headers are complete.
        reason: the reason phrase, often empty.
        headers: in order, repeats kept; names in lower case, as ASGI wants them, values as they came.
        received: bytes that came, of whatever kind.
        pieces: the body that came and was not yet taken.
        held: its bytes.
        begun: whether a byte of the body came.
        complete: whether the last byte came.
        reusable: whether the connection may carry another exchange after this one.
    """

    __slots__ = (
        "_bare",
        "_bodiless",
        "_headed",
        "_parser",
        "_until_close",
        "begun",
        "complete",
        "headers",
        "held",
        "pieces",
        "reason",
        "received",
        "reusable",
        "status",
    )

    def __init__(self, *, bodiless: bool) -> None:
        """`bodiless`: an answer to HEAD, which has no body whatever its headers say."""
        self.status = 0
        self.reason = b""
        self.headers: list[tuple[bytes, bytes]] = []
        self.received = self.held = 0
        self.begun = self.complete = False
        self.reusable = True
        self.pieces: list[bytes] = []
        self._bodiless = bodiless
        self._headed = self._until_close = False
        self._bare = 0
        # A parser for each message costs 0.3 us and leaves no state behind for the next one.
        self._parser = HttpResponseParser(self)

    def feed(self, data: bytes) -> None:
        """The next bytes from the endpoint.

        Raises:
            UpstreamBroken: this is no HTTP, or more of a head than is borne.
        """
        held = self.held
        self.received += len(data)
        try:
            self._parser.feed_data(data)
        except HttpParserError as error:
            if not self.complete:
                why = error.__context__ or error
                raise UpstreamBroken(f"the answer is no HTTP: {why}", answered=True) from error
            self.reusable = False
        if self.held > held:
            self._bare = 0
        elif not self.complete:
            self._bare += len(data)
            if self._bare > MAX_HEAD:
                raise UpstreamBroken(f"the answer has more than {MAX_HEAD} bytes of headers", answered=True)

    def feed_eof(self) -> None:
        """The endpoint will send no more; `complete` tells whether that was its way to end the body."""
        self.complete = self.complete or self._until_close

    def take(self) -> bytes:
        """The bytes of the body that came since the last call."""
        pieces = self.pieces
        data = pieces[0] if len(pieces) == 1 else b"".join(pieces)
        pieces.clear()
        self.held = 0
        return data

    def stop(self) -> None:
        """No more bytes will be fed. Breaks the cycle of parser and callbacks, which only the gc would find."""
        del self._parser

    def on_message_begin(self) -> None:
        """A first answer, or another one: after an interim answer the real one, after that only garbage."""
        if self.complete:
            raise HttpParserError("bytes after the end of the message")
        self.reason = b""
        self.headers = []

    def on_status(self, reason: bytes) -> None:
        """A piece of the reason phrase."""
        self.reason += reason

    def on_header(self, name: bytes, value: bytes) -> None:
        """A header, or a trailer."""
        if not self._headed:
            self.headers.append((name.lower(), value))

    def on_headers_complete(self) -> None:
        """The head is complete."""
        status = self._parser.get_status_code()
        if status < 200:
            if status in {100, 102, 103}:
                return
            raise HttpParserError(f"an answer with status {status}")
        if status > 599:
            raise HttpParserError(f"an answer with status {status}, which there is not")
        if self.received > MAX_HEAD and sum(len(name) + len(value) + 4 for name, value in self.headers) > MAX_HEAD:
            raise HttpParserError(f"more than {MAX_HEAD} bytes of headers")
        self.status = status
        self._headed = True
        if not self._parser.should_keep_alive():
            self.reusable = False
            self._until_close = not _framed(self.headers)
        self.complete = self._bodiless

    def on_body(self, data: bytes) -> None:
        """A piece of the body."""
        if self.complete:
            raise HttpParserError("a body after an answer that has none")
        self.begun = True
        self.held += len(data)
        self.pieces.append(data)

    def on_message_complete(self) -> None:
        """The last byte was read; an interim answer has its own end, which is not ours."""
        self.complete = self._headed


def _framed(headers: list[tuple[bytes, bytes]]) -> bool:
    """Whether the headers say where the body ends; otherwise it ends with the connection."""
    coding = b""
    for name, value in headers:
        if name == b"content-length":
            return True
        if name == b"transfer-encoding":
            coding = value.rpartition(b",")[2].strip().lower()
    return coding == b"chunked"
