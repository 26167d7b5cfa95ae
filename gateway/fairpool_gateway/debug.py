"""What the gateway sees at this moment, for whoever asks why a request waits or whether a key is still used."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import Any

from fairpool_gateway.dispatcher import Dispatcher
from fairpool_gateway.identity import Directory
from fairpool_gateway.sfq import Q


def pool_view(dispatcher: Dispatcher) -> dict[str, Any]:
    """Virtual time, the tenants that wait or lead (the next to go first) and the slots.

    Meters are in units of `1/q` token; a tenant's `lead` is how far its meter is ahead of virtual time, in tokens per
    weight.
    """
    ordering = dispatcher.ordering
    meters = sorted(ordering.meters(), key=lambda meter: (meter.waiting == 0, meter.meter, meter.tenant))
    return {
        "pool": dispatcher.config.pool,
        "q": Q,
        "v": ordering.v,
        "waiting": ordering.waiting,
        "tenants": [
            {
                "tenant": meter.tenant,
                "weight": meter.weight,
                "waiting": meter.waiting,
                "meter": meter.meter,
                "lead": round((meter.meter - ordering.v) / Q, 3),
            }
            for meter in meters
        ],
        "endpoints": [
            {
                "endpoint": endpoint.spec.id,
                "address": f"{endpoint.spec.host}:{endpoint.spec.port}",
                "slots": endpoint.spec.slots,
                "in_flight": endpoint.in_flight,
                "outstanding": endpoint.outstanding,
            }
            for endpoint in dispatcher.endpoints
        ],
    }


def keys_view(directory: Directory) -> dict[str, Any]:
    """When each key ends and was last used, so that one can be seen to be out of use before it is taken away."""
    return {
        "keys": [
            {
                "tenant": key.tenant,
                "key": key.name,
                "not_after": None if key.not_after == math.inf else _written(key.not_after),
                "last_used": None if key.last_used is None else _written(key.last_used),
            }
            for key in directory.keys.values()
        ]
    }


def _written(moment: float) -> str:
    return f"{datetime.fromtimestamp(moment, UTC):%Y-%m-%dT%H:%M:%SZ}"
