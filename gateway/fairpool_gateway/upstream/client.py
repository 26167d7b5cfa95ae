"""The client of the hot path: one HTTP/1.1 exchange with an endpoint, over a pooled connection.

It adds nothing to a request and takes nothing from an answer: no cookies, no redirects, no decoding, no headers of
its own. A slot is worth more than a connection, so whatever ends early closes its connection at once, and the
engine stops working for it.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterable, Iterable

from fairpool_gateway.errors import ConnectFailed, UpstreamBroken
from fairpool_gateway.upstream.authorities import Authorities, in_words
from fairpool_gateway.upstream.buffers import Buffers
from fairpool_gateway.upstream.connection import Connection
from fairpool_gateway.upstream.pool import Pool
from fairpool_gateway.upstream.response import Response
from fairpool_gateway.upstream.target import Target, Timeouts
from fairpool_gateway.writes import Writes


class Client:
    """Exchanges with endpoints, from within one event loop.

    Args:
        idle_connections: how many are kept per target between exchanges; in use there may be any number.
        keepalive: seconds an idle one is kept. The servers of most engines close after 5, and a request that
            crosses with that has to be sent twice.
        writes: of the event loop that it works on, where others write too.
    """

    def __init__(self, *, idle_connections: int = 1024, keepalive: float = 4.0, writes: Writes | None = None) -> None:
        self._pool: Pool[Connection] = Pool(idle_connections)
        self._buffers = Buffers()
        self._writes = writes or Writes()
        self._authorities = Authorities()
        self._keepalive = keepalive
        self._connections: set[Connection] = set()
        self._closed = False

    @property
    def buffered(self) -> int:
        """Bytes of answers that wait for their readers."""
        return self._buffers.held

    async def send(
        self,
        target: Target,
        head: bytes,
        body: bytes | AsyncIterable[bytes],
        timeouts: Timeouts,
        *,
        once: bool = False,
    ) -> Response:
        """Send a request; returns when the first byte of the answer's body came, or its end.

        Until then status and headers are held: nothing has been promised to anybody, and the caller may try again
        elsewhere. `head` is what `request_head` makes and must match the body's framing; the bytes of `body` go
        out as they are. A body in parts is sent to its end before the answer is waited for.

        A pooled connection that dies before a byte of the answer came had most likely been closed while it was
        idle: such a request is sent once more, on a new connection, if its body can be. `once`: this one is not, and
        so is sent on a new connection from the start.

        Raises:
            ConnectFailed: no connection, or over TLS none to whom it should be; nothing was sent on it.
            UpstreamBroken: the connection was lost, or the answer is no HTTP.
            UpstreamTimedOut: no byte of the body in time.
        """
        connection = None if once else self._pool.take(target)
        if connection is not None:
            try:
                return await connection.exchange(head, body, timeouts)
            except UpstreamBroken as broken:
                if broken.answered or not isinstance(body, bytes):
                    raise
        again = connection is not None
        try:
            connection = await self._connect(target, timeouts.connect)
            return await connection.exchange(head, body, timeouts)
        except ConnectFailed as failed:
            failed.sent = again
            raise
        except UpstreamBroken as broken:
            broken.again = again
            raise

    async def aclose(self) -> None:
        """Close every connection, in use or not; exchanges under way break."""
        self._closed = True
        for connection in self._connections:
            connection.abort()
        if self._connections:
            await asyncio.wait([connection.lost for connection in self._connections])

    async def _connect(self, target: Target, within: float) -> Connection:
        if self._closed:
            raise ConnectFailed("the client is closed")
        loop = asyncio.get_running_loop()
        connection = Connection(loop, target, self._pool, self._buffers, self._writes, self._keepalive)
        tls = target.tls
        context = None if tls is None else self._authorities.context(tls)
        name = None if tls is None else tls.server_name
        try:
            async with asyncio.timeout(within):
                await loop.create_connection(
                    lambda: connection, target.host, target.port, ssl=context, server_hostname=name
                )
        except TimeoutError as error:
            raise ConnectFailed(f"no connection to {target} within {within:g} s") from error
        except ssl.SSLError as error:
            raise ConnectFailed(in_words(error, target)) from error
        except (OSError, UnicodeError) as error:
            raise ConnectFailed(f"no connection to {target}: {str(error) or 'it was closed'}") from error
        self._connections.add(connection)
        connection.lost.add_done_callback(lambda _: self._connections.discard(connection))
        if self._closed:
            connection.abort()
        return connection


def request_head(method: bytes, path: bytes, headers: Iterable[tuple[bytes, bytes]]) -> bytes:
    """The request line and headers, as given, with the blank line that ends them.

    Raises:
        ValueError: something in it would end its line early, so that the endpoint would read another request.
    """
    line = b"%b %b HTTP/1.1" % (method, path)
    if line.count(b" ") != 2:
        raise ValueError("a space inside a request line")
    return message_head(line, headers)


def message_head(line: bytes, headers: Iterable[tuple[bytes, bytes]]) -> bytes:
    """The first line of a message and its headers, as given, with the blank line that ends them.

    Raises:
        ValueError: something in it would end its line early, so that another message would be read.
    """
    lines = [line, *map(b": ".join, headers), b"", b""]
    head = b"\r\n".join(lines)
    breaks = len(lines) - 1
    if head.count(b"\n") != breaks or head.count(b"\r") != breaks:
        raise ValueError("a line break inside the head of a message")
    return head
