"""What the gateway sees at this moment, for whoever asks why a request waits or failed, or whether a key is still used.

All of it is bounded: tenants without a tally of their own are shown together, and of each only the last few requests
are remembered. No prompt and no key is in it; of a model or a tenant, only what the gateway had found good.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import asdict
from datetime import UTC, datetime
from typing import TypeVar

from fairpool_gateway.dispatcher import Dispatcher, Request
from fairpool_gateway.endpoints import Endpoint
from fairpool_gateway.health import Standing
from fairpool_gateway.identity import Directory
from fairpool_gateway.sfq import Meter, Q
from fairpool_gateway.tallies import Refusal
from fairpool_gateway.views import (
    DispatchView,
    EndpointView,
    KeysView,
    KeyView,
    MeterView,
    PoolView,
    RefusalView,
    RequestsView,
    TenantsView,
    TenantView,
    UsedView,
)

R = TypeVar("R")

MOST_METERS = 1000
"""How many tenants the view of the pool shows, those that go next first."""


class Clock:
    """Turns moments of the gateway's monotonic clock into times that people read."""

    def __init__(self, now: float, since_1970: float) -> None:
        self.now = now
        self._offset = since_1970 - now

    def written(self, moment: float) -> str:
        """The moment in UTC, to the millisecond."""
        return _written(moment + self._offset, "milliseconds")


def pool_view(dispatcher: Dispatcher, now: float) -> PoolView:
    """Virtual time, the tenants that wait or lead (the next to go first) and the endpoints with their slots.

    Meters are in units of `1/q` token; a tenant's `lead` is how far its meter is ahead of virtual time, in tokens per
    weight.
    """
    ordering, admission = dispatcher.ordering, dispatcher.admission
    meters = sorted(ordering.meters(), key=lambda meter: (meter.waiting == 0, meter.meter, meter.tenant))
    return PoolView(
        pool=dispatcher.config.pool,
        q=Q,
        v=ordering.v,
        waiting=ordering.waiting,
        retrying=dispatcher.retrying,
        held_bytes=admission.bytes,
        tenants=[_meter_view(meter, ordering.v) for meter in meters[:MOST_METERS]],
        endpoints=[_endpoint_view(endpoint, now) for endpoint in dispatcher.endpoints],
    )


def tenants_view(dispatcher: Dispatcher) -> TenantsView:
    """What each tenant asked for and got, its share by weight beside what it was charged for, and what it owes."""
    tallies = list(dispatcher.tallies)
    weights = dispatcher.config.weights()
    debts = dispatcher.charging.debts(dispatcher.tallies)
    total_weight, charged = sum(weights.values()), dispatcher.counts.charged
    return TenantsView(
        charged_tokens=charged,
        tenants=[
            TenantView(
                tenant=tally.tenant or None,
                weight=weights.get(tally.tenant),
                share=_fraction(weights.get(tally.tenant, 0), total_weight),
                charged_share=_fraction(tally.counts.charged, charged),
                in_flight=tally.in_flight,
                debt=None if debts is None else debts[tally.tenant],
                waited_seconds=_fraction(tally.waits.microseconds, tally.counts.dispatched * 1_000_000),
                **asdict(tally.counts),
                outcomes=dict(tally.outcomes),
            )
            for tally in tallies
        ],
    )


def requests_view(
    dispatcher: Dispatcher, clock: Clock, *, tenant: str | None = None, request: str | None = None
) -> RequestsView:
    """The last dispatches and refusals, the newest first: all, or a tenant's, or those of one request.

    A request is named by the `x-request-id` of its answer, or by its id in the decision log.
    """
    tallies = list(dispatcher.tallies)
    dispatches = sorted(
        (
            each
            for each in _of_all(tally.dispatches for tally in tallies)
            if tenant in {None, each.tenant} and request in {None, each.id, each.given_id.decode()}
        ),
        key=lambda each: each.dispatched or 0.0,
        reverse=True,
    )
    refusals = sorted(
        (
            each
            for each in _of_all(tally.refusals for tally in tallies)
            if tenant in {None, each.tenant} and request in {None, each.request}
        ),
        key=lambda each: each.at,
        reverse=True,
    )
    return RequestsView(
        dispatches=[_dispatch_view(each, clock) for each in dispatches],
        refusals=[_refusal_view(each, clock) for each in refusals],
    )


def keys_view(directory: Directory) -> KeysView:
    """When each key ends and was last used, so that one can be seen to be out of use before it is taken away."""
    return KeysView(
        keys=[
            KeyView(
                tenant=key.tenant,
                key=key.name,
                not_after=None if key.not_after == math.inf else _written(key.not_after),
                last_used=None if key.last_used is None else _written(key.last_used),
            )
            for key in directory.keys.values()
        ]
    )


def _meter_view(meter: Meter, v: int) -> MeterView:
    return MeterView(
        tenant=meter.tenant,
        weight=meter.weight,
        waiting=meter.waiting,
        meter=meter.meter,
        lead=round((meter.meter - v) / Q, 3),
    )


def _endpoint_view(endpoint: Endpoint, now: float) -> EndpointView:
    health = endpoint.health
    return EndpointView(
        endpoint=endpoint.spec.id,
        address=f"{endpoint.spec.host}:{endpoint.spec.port}",
        slots=endpoint.spec.slots,
        in_flight=endpoint.in_flight,
        outstanding=endpoint.outstanding,
        draining=endpoint.spec.draining,
        wanting=endpoint.wanting,
        standing=health.standing.name.lower(),
        out_for_seconds=round(max(0.0, health.until - now), 1) if health.standing is Standing.EJECTED else 0,
        ejected=health.ejected,
    )


def _dispatch_view(request: Request, clock: Clock) -> DispatchView:
    return DispatchView(
        request=request.given_id.decode(),
        id=request.id,
        tenant=request.tenant,
        model=request.shape.model,
        dispatched=clock.written(request.dispatched or 0.0),
        waited_seconds=round(request.waited, 3),
        estimate=request.estimate,
        cost=request.cost,
        endpoint=None if request.slot is None else request.slot.endpoint.spec.id,
        failed_on=[endpoint.spec.id for endpoint in request.tried],
        state=request.state.name.lower(),
        used=None if (used := request.used) is None else UsedView(used.input, used.output, used.events, used.told),
    )


def _refusal_view(refusal: Refusal, clock: Clock) -> RefusalView:
    return RefusalView(
        request=refusal.request,
        tenant=refusal.tenant or None,
        refused=clock.written(refusal.at),
        reason=refusal.reason,
    )


def _of_all(remembered: Iterable[Iterable[R]]) -> list[R]:
    return [each for some in remembered for each in some]


def _fraction(part: float, whole: float) -> float:
    return round(part / whole, 4) if whole else 0.0


def _written(since_1970: float, precision: str = "seconds") -> str:
    return datetime.fromtimestamp(since_1970, UTC).isoformat(timespec=precision).replace("+00:00", "Z")
