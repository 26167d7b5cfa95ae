"""What tracing is told of a request, and by what it is told."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from fairpool_gateway.cost import Api, Used
from fairpool_gateway.dispatcher import Request
from fairpool_gateway.endpoints import EndpointSpec
from fairpool_gateway.errors import UpstreamError

Headers = Sequence[tuple[bytes, bytes]]
"""Names in lower case, as ASGI gives them."""


class Trace(Protocol):
    """One request's. Events come in the order of the methods; `sends` to `finished` may repeat, `end` always comes."""

    def waits(self, request: Request) -> None:
        """It joins the queue."""

    def sends(self, endpoint: EndpointSpec, headers: Headers) -> Headers:
        """It has a slot and is sent to an endpoint with these headers; returns those to send instead."""

    def answered(self, status: int) -> None:
        """The first byte of the endpoint's answer came."""

    def failed(self, error: UpstreamError) -> None:
        """The endpoint gave no answer."""

    def finished(self, used: Used | None) -> None:
        """The endpoint's last byte came, or the answer broke off; `used` is None where nothing told."""

    def end(self, tenant: str | None, reason: str, status: int) -> None:
        """It is over: whose it was, how it ended, and what status the tenant was told, 0 for none."""


class Tracing(Protocol):
    """Makes the traces of one gateway."""

    def begin(self, headers: Headers, api: Api, path: str, request_id: bytes) -> Trace:
        """The trace of a request with these headers, which its tenant knows by `request_id`."""

    def close(self) -> None:
        """Send what has yet to be sent. May take seconds; needs no event loop."""
