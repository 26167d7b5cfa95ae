"""Getting one answer out of a pool in which endpoints fail: tries that end before a first byte go on elsewhere.

What always holds: only one attempt runs at a time, on the slot that the request holds; a tenant sees nothing of a try
that was repeated; and when no try is left, what the last endpoint that answered said goes out as it is, a 503 too.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from fairpool_gateway.broker import Broker
from fairpool_gateway.dispatcher import Request
from fairpool_gateway.endpoints import Endpoint
from fairpool_gateway.errors import (
    ConnectFailed,
    Refused,
    UpstreamBroken,
    UpstreamError,
    UpstreamFailed,
    UpstreamTimedOut,
    UpstreamTimeout,
)
from fairpool_gateway.health import SUSPICIOUS
from fairpool_gateway.upstream import Response

log = logging.getLogger(__name__)

Send = Callable[[Endpoint], Awaitable[Response]]
"""Sends the request to an endpoint; returns once the first byte of its answer's body came."""


@dataclass(frozen=True, slots=True)
class _Failure:
    """An attempt without an answer; `lost`: after all of the request was sent; `again`: and that for a second time."""

    refusal: Refused
    lost: bool
    again: bool = False


async def answer(broker: Broker, request: Request, endpoint: Endpoint, send: Send) -> Response:
    """The answer to pass on to the tenant; the caller closes it.

    Raises:
        UpstreamFailed: no endpoint that was tried answered.
        UpstreamTimeout: an endpoint stayed silent; it may still be working, so nobody else is asked to.
    """
    kept: Response | None = None
    try:
        while True:
            outcome = await _attempt(broker, request, endpoint, send)
            if isinstance(outcome, Response):
                kept, superseded = outcome, kept
                if superseded is not None:
                    superseded.close()
                if outcome.status not in SUSPICIOUS:
                    return outcome
            other = await _elsewhere(broker, request, outcome if isinstance(outcome, _Failure) else None)
            if other is not None:
                endpoint = other
            elif kept is not None:
                return kept
            elif isinstance(outcome, _Failure):
                raise outcome.refusal
    except BaseException:
        if kept is not None:
            kept.close()
        raise


async def _attempt(broker: Broker, request: Request, endpoint: Endpoint, send: Send) -> Response | _Failure:
    try:
        response = await send(endpoint)
    except UpstreamTimedOut as error:
        _tell(request, endpoint, error)
        broker.answered(request, UpstreamTimeout.status)
        raise UpstreamTimeout(f"The endpoint gave no answer in time: {error}.") from error
    except ConnectFailed as error:
        _tell(request, endpoint, error)
        broker.connect_failed(request)
        return _Failure(UpstreamFailed(f"The endpoint could not be reached: {error}."), lost=error.sent)
    except UpstreamBroken as error:
        _tell(request, endpoint, error)
        broker.answered(request, UpstreamFailed.status)
        refusal = UpstreamFailed(f"The endpoint broke off before its answer began: {error}.")
        return _Failure(refusal, lost=True, again=error.again)
    broker.answered(request, response.status)
    return response


def _tell(request: Request, endpoint: Endpoint, error: UpstreamError) -> None:
    given_id, name = request.given_id.decode(), endpoint.spec.id
    fields = {"request": given_id, "tenant": request.tenant, "endpoint": name}
    log.warning("request %s failed on endpoint %s: %s", given_id, name, error, extra=fields)


async def _elsewhere(broker: Broker, request: Request, failure: _Failure | None) -> Endpoint | None:
    """Another endpoint to try after a failure or a bad answer, or None if there is none, or none came free in time."""
    lost = failure is not None and failure.lost
    if (failure is not None and failure.again) or not broker.may_retry(request, lost=lost):
        return None
    try:
        return await broker.retry(request, lost=lost)
    except Refused:
        return None
