"""What the gateway itself says, in the form that the client of a path reads: OpenAI's, or Anthropic's on its own paths.

Each client ignores the other's form. What always holds: whatever is said has the same status, reason and headers in
both, and an id of the request that the client shows.
"""

from __future__ import annotations

from typing import Final, Protocol

import msgspec

from fairpool_gateway.errors import Refused

_MESSAGES: Final = "/v1/messages"

_ANTHROPIC_TYPES: Final = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    415: "invalid_request_error",
    429: "rate_limit_error",
    503: "overloaded_error",
    504: "timeout_error",
}
"""Any other is an `api_error`."""


class Dialect(Protocol):
    """How a client is talked to.

    Attributes:
        id_headers: in which headers of an answer it looks for the id of its request.
    """

    id_headers: tuple[bytes, ...]

    def refusal(self, refusal: Refused) -> bytes:
        """The body of a refusal."""
        ...

    def broken(self, message: str) -> bytes:
        """The event that ends a stream which broke."""
        ...


class _OpenAi:
    id_headers: tuple[bytes, ...] = (b"x-request-id",)

    def refusal(self, refusal: Refused) -> bytes:
        return refusal.body()

    def broken(self, message: str) -> bytes:
        error = {"message": message, "type": "server_error", "code": "upstream_failed"}
        return b"data: %b\n\n" % msgspec.json.encode({"error": error})


class _Anthropic:
    id_headers: tuple[bytes, ...] = (b"x-request-id", b"request-id")

    def refusal(self, refusal: Refused) -> bytes:
        kind = _ANTHROPIC_TYPES.get(refusal.status, "api_error")
        return _anthropic_error(kind, refusal.message, refusal.reason)

    def broken(self, message: str) -> bytes:
        return b"event: error\ndata: %b\n\n" % _anthropic_error("api_error", message, "upstream_failed")


def _anthropic_error(kind: str, message: str, reason: str) -> bytes:
    error = {"type": kind, "message": message, "details": {"error_code": reason}}
    return msgspec.json.encode({"type": "error", "error": error})


OPENAI: Final[Dialect] = _OpenAi()
ANTHROPIC: Final[Dialect] = _Anthropic()


def dialect_of(path: str) -> Dialect:
    """The dialect of those who call a path."""
    return ANTHROPIC if path == _MESSAGES or path.startswith(_MESSAGES + "/") else OPENAI
