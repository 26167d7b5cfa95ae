"""A tenant's body on its way in, bounded in length and counted against what the pool may hold.

What always holds: what its headers show to be refused is refused before a byte of it is read; and however the reading
ends, nothing of it is counted afterwards. A body that came in one piece with its headers is not counted here, for it
is queued or refused before anything else can happen.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from fairpool_gateway.admission import Upload
from fairpool_gateway.app import headers
from fairpool_gateway.broker import Broker
from fairpool_gateway.errors import BodyTooLarge, TenantGone, UnsupportedEncoding

Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]


async def read_body(broker: Broker, tenant: str, given: headers.RawHeaders, receive: Receive, *, most: int) -> bytes:
    """The whole body of a request with these headers.

    Raises:
        UnsupportedEncoding: its cost could not be read.
        BodyTooLarge: it has more than `most` bytes.
        QueueFull: there is no room for it, or others need it more.
        TenantGone: the tenant left before it was complete.
    """
    if (encoding := headers.first(given, b"content-encoding")) and encoding.lower() != b"identity":
        raise UnsupportedEncoding("Send the body without Content-Encoding.")
    declared = headers.first(given, b"content-length")
    too_large = BodyTooLarge(f"The body exceeds the {most} bytes that this pool accepts.")
    if declared is not None and int(declared) > most:
        raise too_large
    upload, length = Upload(tenant), 0
    try:
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise TenantGone
            piece: bytes = message["body"]
            more: bool = message["more_body"]
            length += len(piece)
            if length > most:
                raise too_large
            if not more and length == len(piece):
                return piece
            broker.receive(upload, piece)
            if not more:
                return bytes(upload.body)
    finally:
        broker.release(upload)
