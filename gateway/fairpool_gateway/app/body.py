"""A tenant's body on its way in: bounded in length, counted against what the pool may hold, and then read for its cost.

What always holds: what its headers show to be refused is refused before a byte of it is read; and however the reading
ends, nothing of it is counted afterwards. A body that came in one piece with its headers is not counted here, for it
is queued or refused before anything else can happen.

Everybody waits while a body is parsed, for 1 to 5 ms per MiB. So those above `LARGE` take turns, and between two of
them, and between the steps of one, the loop serves whatever else is ready: nobody waits longer than for one of them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, Final

from fairpool_gateway.admission import Upload
from fairpool_gateway.app import headers
from fairpool_gateway.broker import Broker
from fairpool_gateway.cost import Shape
from fairpool_gateway.errors import BodyTooLarge, InvalidRequest, TenantGone, UnsupportedEncoding

LARGE: Final = 4 << 20

Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]

Reader = Callable[[bytes, bytes], Shape]
"""Makes the shape of a request out of its body and its Content-Type."""


class Bodies:
    """The bodies of one pool's requests. To be made on the event loop that they come on."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._turns = asyncio.Lock()

    def at_hand(self, body: bytes, given: headers.RawHeaders, *, read: Reader, most: int) -> Shape:
        """What `read` finds a body to say about its cost that is here already; raises what reading one raises."""
        content_type = _checked(given, most)
        if len(body) > most:
            raise _too_large(most)
        return read(body, content_type)

    async def read(
        self, tenant: str, given: headers.RawHeaders, receive: Receive, *, read: Reader, most: int
    ) -> tuple[bytes, Shape]:
        """The whole body of a request with these headers, and what `read` finds it to say about its cost.

        Raises:
            UnsupportedEncoding: its cost could not be read.
            BodyTooLarge: it has more than `most` bytes.
            QueueFull: there is no room for it, or others need it more.
            TenantGone: the tenant left before it was complete.
            InvalidRequest: it is not what `read` takes.
        """
        content_type = _checked(given, most)
        upload, length = Upload(tenant), 0
        try:
            while True:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise TenantGone
                piece: bytes = message["body"]
                more: bool = message["more_body"]
                if more and not piece:
                    raise InvalidRequest("The chunks of the body cannot be told apart.")
                length += len(piece)
                if length > most:
                    raise _too_large(most)
                if not more and length == len(piece):
                    return piece, read(piece, content_type)
                self._broker.receive(upload, piece)
                if not more:
                    return await self._complete(upload, read, content_type)
        finally:
            self._broker.release(upload)

    async def _complete(self, upload: Upload, read: Reader, content_type: bytes) -> tuple[bytes, Shape]:
        """What came in many pieces. It stays counted until it is read."""
        if len(upload.body) <= LARGE:
            body = bytes(upload.body)
            return body, read(body, content_type)
        async with self._turns:
            await _let_others_go(upload)
            body = bytes(upload.body)
            await _let_others_go(upload)
            return body, read(body, content_type)


async def _let_others_go(upload: Upload) -> None:
    """Let the loop serve what is ready; raises if the upload has to make room meanwhile."""
    await asyncio.sleep(0)
    if upload.refusal is not None:
        raise upload.refusal


def _checked(given: headers.RawHeaders, most: int) -> bytes:
    """The Content-Type, if the headers promise a body that can be read here."""
    content_type: bytes | None = None
    length = b""
    for name, value in given:
        if name == b"content-type":
            if content_type is not None:
                raise InvalidRequest("Send one Content-Type only.")
            content_type = value
        elif name == b"content-encoding" and value.lower() not in {b"", b"identity"}:
            raise UnsupportedEncoding("Send the body without Content-Encoding.")
        elif name == b"content-length":
            length = value
    if length and int(length) > most:
        raise _too_large(most)
    return content_type or b""


def _too_large(most: int) -> BodyTooLarge:
    return BodyTooLarge(f"The body exceeds the {most} bytes that this pool accepts.")
