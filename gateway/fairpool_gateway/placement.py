"""Placement: which endpoint takes the next request. It never decides whose request that is."""

from __future__ import annotations

from collections.abc import Iterable

from fairpool_gateway.endpoints import Endpoint


def choose(endpoints: Iterable[Endpoint]) -> Endpoint | None:
    """The endpoint with a free slot and the least cost outstanding, the first of equals; None if no slot is free."""
    chosen: Endpoint | None = None
    for endpoint in endpoints:
        if endpoint.has_free_slot and (chosen is None or endpoint.outstanding < chosen.outstanding):
            chosen = endpoint
    return chosen
