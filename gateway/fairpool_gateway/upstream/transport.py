"""The same client under httpx, so that probes, scrapes and tests have httpx's comfort and the hot path's behaviour.

The hot path calls `Client` directly: an exchange of a kilobyte costs 16 us of CPU there, and 190 us through an
`httpx.AsyncClient`. That one, unlike ours, adds headers of its own and keeps cookies: share none between tenants.
"""

from __future__ import annotations

import math
from collections.abc import AsyncIterable, AsyncIterator, Iterator
from contextlib import contextmanager
from typing import Any, cast

import httpx

from fairpool_gateway.errors import ConnectFailed, UpstreamBroken, UpstreamTimedOut
from fairpool_gateway.upstream.client import Client, request_head
from fairpool_gateway.upstream.response import Response
from fairpool_gateway.upstream.target import Target, Timeouts, Tls


class Transport(httpx.AsyncBaseTransport):
    """Sends httpx's requests through a client, which stays its owner's to close.

    Of httpx's time-outs, `read` limits both the first byte and the silence between bytes. Requests for https go to
    endpoints that prove themselves as `tls` says.
    """

    def __init__(self, client: Client, tls: Tls | None = None) -> None:
        self._client = client
        self._tls = tls

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """One exchange; the body is read as the answer's stream is."""
        target = self._target(request)
        head = request_head(request.method.encode("ascii"), request.url.raw_path, request.headers.raw)
        with _as_httpx(request):
            response = await self._client.send(target, head, _body(request), _timeouts(request))
        return httpx.Response(
            response.status,
            headers=response.headers,
            stream=_Stream(request, response),
            extensions={"http_version": b"HTTP/1.1", "reason_phrase": response.reason},
            request=request,
        )

    def _target(self, request: httpx.Request) -> Target:
        url = request.url
        match url.scheme:
            case "http":
                return Target(url.host, url.port or 80)
            case "https" if self._tls is not None:
                return Target(url.host, url.port or 443, self._tls)
            case _:
                raise httpx.UnsupportedProtocol(f"no way to send to {url.scheme}", request=request)


class _Stream(httpx.AsyncByteStream):
    """The body of an answer."""

    def __init__(self, request: httpx.Request, response: Response) -> None:
        self._request = request
        self._response = response

    async def __aiter__(self) -> AsyncIterator[bytes]:
        with _as_httpx(self._request):
            while data := await self._response.read():
                yield data

    async def aclose(self) -> None:
        self._response.close()


def _body(request: httpx.Request) -> bytes | AsyncIterable[bytes]:
    """What goes out after the head: bytes where there are any, since only those can be sent twice."""
    if isinstance(request.stream, httpx.ByteStream):
        return request.content
    stream = cast(AsyncIterable[bytes], request.stream)
    return _chunked(stream) if "transfer-encoding" in request.headers else stream


async def _chunked(stream: AsyncIterable[bytes]) -> AsyncIterator[bytes]:
    async for part in stream:
        if part:
            yield b"%x\r\n%b\r\n" % (len(part), part)
    yield b"0\r\n\r\n"


def _timeouts(request: httpx.Request) -> Timeouts:
    set_by_caller: dict[str, Any] = request.extensions.get("timeout", {})

    def seconds(kind: str) -> float:
        value = set_by_caller.get(kind)
        return math.inf if value is None else float(value)

    return Timeouts(connect=seconds("connect"), first_byte=seconds("read"), idle=seconds("read"))


@contextmanager
def _as_httpx(request: httpx.Request) -> Iterator[None]:
    """Turn our failures into those that users of httpx expect."""
    try:
        yield
    except ConnectFailed as error:
        kind = httpx.ConnectTimeout if isinstance(error.__cause__, TimeoutError) else httpx.ConnectError
        raise kind(str(error), request=request) from error
    except UpstreamTimedOut as error:
        raise httpx.ReadTimeout(str(error), request=request) from error
    except UpstreamBroken as error:
        raise httpx.ReadError(str(error), request=request) from error
