"""The one tree of exceptions, so that whatever goes wrong is answered in one documented way.

Every `Refused` maps to exactly one HTTP status and one reason; the reason goes out as `x-fairpool-reason`, the
body has OpenAI's error shape, and a refusal that may succeed later says when in `Retry-After`. Messages tell the
reader what to do and never hold a credential or a prompt.

    GatewayError
      ConfigInvalid        the configuration cannot be used; lists every problem with its path
      CannotStart          a port or a file that the process needs is not to be had
      ClusterError         the Kubernetes API did not do what was asked; what was seen last stays in force
        ClusterExpired       a watch, or a list in pages, is too old to go on (410): begin anew
      UpstreamError        an exchange with an endpoint failed
        ConnectFailed        no connection; says whether one had been lost just before, with the request sent
        UpstreamBroken       the connection or its HTTP broke; says whether any byte of the answer came
        UpstreamTimedOut     no first byte, or silence between bytes, for too long
      TenantGone           the tenant left before its answer ended: nobody is there to be told
      Refused              what a tenant is told
"""

from __future__ import annotations

from typing import ClassVar, Self

import msgspec

RETRY_AFTER_LEAST, RETRY_AFTER_MOST = 1, 60
"""Seconds. The openai client does not retry at all when told to wait longer."""


class GatewayError(Exception):
    """The root: catches whatever this package raises on purpose."""


class ConfigInvalid(GatewayError):
    """The configuration cannot be used. `problems` holds one `path: what is wrong` a line."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


class CannotStart(GatewayError):
    """A port or a file that the process needs is not to be had."""


class ClusterError(GatewayError):
    """The Kubernetes API cannot be reached, refuses, or answers what it should not."""


class ClusterExpired(ClusterError):
    """What the API server was asked to go on from is gone (410)."""


class UpstreamError(GatewayError):
    """An exchange with an endpoint failed."""


class ConnectFailed(UpstreamError):
    """No connection to the endpoint. `sent`: whether the request had gone out before, on one that was then lost."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.sent = False


class UpstreamBroken(UpstreamError):
    """The connection broke or did not speak HTTP.

    `answered`: whether any byte of an answer had come; `again`: whether the request had gone out for the second time.
    """

    def __init__(self, message: str, *, answered: bool) -> None:
        super().__init__(message)
        self.answered = answered
        self.again = False


class UpstreamTimedOut(UpstreamError):
    """The endpoint stayed silent for longer than the pool allows."""


class TenantGone(GatewayError):
    """The tenant's connection closed before its answer ended."""


class _ErrorBody(msgspec.Struct):
    message: str
    type: str
    param: str | None
    code: str


class _Envelope(msgspec.Struct):
    error: _ErrorBody


class Refused(GatewayError):
    """A request that this gateway answers itself; never raised as is, only as one of the classes below."""

    status: ClassVar[int]
    reason: ClassVar[str]
    type: ClassVar[str]
    tenant: str | None = None
    """Whose request it is, where who refuses it has found that out."""

    def __init__(self, message: str, *, param: str | None = None, retry_after: int | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.param = param
        self.retry_after = None if retry_after is None else min(max(retry_after, RETRY_AFTER_LEAST), RETRY_AFTER_MOST)

    def body(self) -> bytes:
        """The answer's JSON, in OpenAI's error shape."""
        return msgspec.json.encode(
            _Envelope(_ErrorBody(message=self.message, type=self.type, param=self.param, code=self.reason))
        )

    def headers(self, spread: float) -> list[tuple[bytes, bytes]]:
        """The answer's headers, but for the request id and the length.

        `spread`, from 0 up to 1, is how much of its last third is taken off Retry-After. A random one keeps those who
        are refused together from coming back together.
        """
        headers = [
            (b"content-type", b"application/json"),
            (b"x-fairpool-reason", self.reason.encode()),
        ]
        if self.retry_after is not None:
            told = self.retry_after - int(spread * (self.retry_after // 3 + 1))
            headers.append((b"retry-after", b"%d" % told))
        return headers


class Unauthenticated(Refused):
    """No credential, or one that belongs to nobody."""

    status, reason, type = 401, "unauthenticated", "authentication_error"


class Forbidden(Refused):
    """A tenant that may not use this pool."""

    status, reason, type = 403, "forbidden", "permission_error"


class TenantSuspended(Refused):
    """A tenant that may not use this pool for now."""

    status, reason, type = 403, "tenant_suspended", "permission_error"

    @classmethod
    def of(cls, tenant: str) -> Self:
        """The refusal of that tenant's requests."""
        refusal = cls(f"Tenant {tenant} is suspended. Ask those who run this pool.")
        refusal.tenant = tenant
        return refusal


class ModelNotFound(Refused):
    """The pool does not serve this model."""

    status, reason, type = 404, "model_not_found", "invalid_request_error"

    @classmethod
    def of(cls, model: str, tenant: str) -> Self:
        """The refusal of a tenant's request for that model."""
        refusal = cls(
            f"The model {model[:100]!r} is not served here. GET /v1/models lists those that are.", param="model"
        )
        refusal.tenant = tenant
        return refusal


class NotFound(Refused):
    """No such path here."""

    status, reason, type = 404, "not_found", "invalid_request_error"


class InvalidRequest(Refused):
    """The body is not what the path expects."""

    status, reason, type = 400, "invalid_request", "invalid_request_error"


class BodyTimeout(Refused):
    """The body did not come in time."""

    status, reason, type = 408, "body_timeout", "invalid_request_error"

    def headers(self, spread: float) -> list[tuple[bytes, bytes]]:
        """As ever; and the connection is closed, for the rest of the body cannot be told from what follows it."""
        return [*super().headers(spread), (b"connection", b"close")]


class UnsupportedEncoding(Refused):
    """A request with a Content-Encoding: its cost cannot be read."""

    status, reason, type = 415, "unsupported_encoding", "invalid_request_error"


class BodyTooLarge(Refused):
    """The body exceeds the pool's `queue.maxRequestBytes`."""

    status, reason, type = 413, "body_too_large", "invalid_request_error"


class HeadersTooLarge(Refused):
    """The headers exceed what is borne, before anything else of the request is known."""

    status, reason, type = 431, "headers_too_large", "invalid_request_error"


class QueueFull(Refused):
    """As much as may wait, of this tenant or in this pool, waits already."""

    status, reason, type = 429, "queue_full", "rate_limit_error"


class QueueTimeout(Refused):
    """Waited too long while the pool worked."""

    status, reason, type = 429, "queue_timeout", "rate_limit_error"


class NoEndpoint(Refused):
    """Waited too long with no endpoint ready."""

    status, reason, type = 503, "no_endpoint", "service_unavailable_error"


class PoolSuspended(Refused):
    """The pool takes no requests for now."""

    status, reason, type = 503, "pool_suspended", "service_unavailable_error"

    @classmethod
    def of(cls, pool: str) -> Self:
        """The refusal of every request for that pool."""
        return cls(f"Pool {pool} is suspended. Retry later.", retry_after=RETRY_AFTER_MOST)


class Draining(Refused):
    """The gateway shuts down."""

    status, reason, type = 503, "draining", "service_unavailable_error"

    @classmethod
    def now(cls) -> Self:
        """The refusal of whatever comes while it does, or cannot be finished before its end."""
        return cls("This gateway is shutting down. Retry: another one takes over.", retry_after=1)


class InternalError(Refused):
    """A fault of the gateway itself, which its log describes."""

    status, reason, type = 500, "internal_error", "server_error"


class UpstreamFailed(Refused):
    """The endpoint failed before its first byte, with no answer."""

    status, reason, type = 502, "upstream_failed", "server_error"


class UpstreamTimeout(Refused):
    """The endpoint gave no first byte in time."""

    status, reason, type = 504, "upstream_timeout", "server_error"
