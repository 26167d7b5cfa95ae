"""Placement: which endpoint takes the next request. It never decides whose request that is."""

from __future__ import annotations

from collections.abc import Container, Iterable

from fairpool_gateway.endpoints import Endpoint


def choose(endpoints: Iterable[Endpoint], besides: Container[Endpoint] = ()) -> Endpoint | None:
    """The endpoint with a free slot and the least cost outstanding for its slots, the first of equals.

    None if no slot is free. `besides` names endpoints that are not to be chosen.
    """
    chosen: Endpoint | None = None
    for endpoint in endpoints:
        if (
            endpoint.has_free_slot
            and (chosen is None or endpoint.outstanding * chosen.spec.slots < chosen.outstanding * endpoint.spec.slots)
            and endpoint not in besides
        ):
            chosen = endpoint
    return chosen
