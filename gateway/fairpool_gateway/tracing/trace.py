"""What happens to a request, as tracing is told of it. These classes tell nobody; `spans` has those that do."""

from __future__ import annotations

from collections.abc import Sequence

from fairpool_gateway.cost import Api, Used
from fairpool_gateway.dispatcher import Request
from fairpool_gateway.endpoints import EndpointSpec
from fairpool_gateway.errors import UpstreamError

Headers = Sequence[tuple[bytes, bytes]]
"""Names in lower case, as ASGI gives them."""


class Trace:
    """One request's. Events come in the order of the methods; `sends` to `finished` may repeat, `end` always comes."""

    __slots__ = ()

    def waits(self, request: Request) -> None:
        """It joins the queue."""

    def dispatched(self, request: Request) -> None:
        """It got a slot."""

    def sends(self, endpoint: EndpointSpec, headers: Headers) -> Headers:  # noqa: ARG002 - nobody is told
        """It is sent to an endpoint with these headers; returns those to send instead."""
        return headers

    def answered(self, status: int) -> None:
        """The first byte of the endpoint's answer came."""

    def failed(self, error: UpstreamError) -> None:
        """The endpoint gave no answer."""

    def finished(self, used: Used | None) -> None:
        """The endpoint's last byte came, or the answer broke off; `used` is None where nothing told."""

    def told(self, status: int) -> None:
        """The tenant is answered, with this status."""

    def end(self, tenant: str | None, reason: str) -> None:
        """It is over: whose it was, and how it ended."""


_NO_TRACE = Trace()


class Tracing:
    """Makes the traces of one gateway."""

    def begin(self, headers: Headers, api: Api, path: str, request_id: bytes) -> Trace:  # noqa: ARG002 - as above
        """The trace of a request with these headers, which its tenant knows by `request_id`."""
        return _NO_TRACE

    def close(self) -> None:
        """Send what has yet to be sent. May take seconds; needs no event loop."""
