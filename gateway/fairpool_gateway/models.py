"""Which models a pool serves, and which of its endpoints may take part in that.

Either the pool lists its models, and an endpoint that says it serves only some of them or none gets no slot; one that
does not say is believed to serve them, for there are engines that answer to any name. Or the pool lists none: then it
serves what its endpoints have in common, and one that does not say gets no slot, because nothing is known of it. What
always holds: every endpoint that may get a slot has said nothing against any model that is served.

An endpoint that is new in the pool may have to be asked before it gets its first slot; one that cannot be asked later
is believed to serve what it served before.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Final

import msgspec

from fairpool_gateway.endpoints import Endpoint

MOST_MODELS: Final = 1000
_LONGEST_NAME: Final = 256
_SHOWN: Final = 3


class _Model(msgspec.Struct):
    id: str


class _List(msgspec.Struct):
    data: list[_Model]


def read_list(body: bytes) -> frozenset[str] | None:
    """The names in an answer to `GET /v1/models`; None if it is no such list."""
    try:
        listed = msgspec.json.decode(body, type=_List)
    except (msgspec.DecodeError, RecursionError):
        return None
    names = (model.id for model in listed.data[:MOST_MODELS])
    return frozenset(name for name in names if 0 < len(name) <= _LONGEST_NAME and name.isprintable())


def judge(listed: tuple[str, ...], endpoints: Iterable[Endpoint]) -> tuple[str, ...]:
    """Say of each endpoint why it may not take part, if so; returns the models that are served.

    These are `listed`, or if there are none those that the endpoints have in common, which may be none either.
    """
    endpoints = list(endpoints)
    if listed:
        served = listed
        for endpoint in endpoints:
            endpoint.wanting = _not_asked(endpoint) or _lacks(endpoint.models, served)
        return served
    lists = [endpoint.models for endpoint in endpoints if endpoint.models and not endpoint.spec.draining]
    served = tuple(sorted(frozenset.intersection(*lists))) if lists else ()
    for endpoint in endpoints:
        endpoint.wanting = _not_asked(endpoint) or _unknown(endpoint.models, served)
    return served


def _not_asked(endpoint: Endpoint) -> str | None:
    waits = endpoint.spec.asked_first and not endpoint.asked
    return "has yet to say which models it serves" if waits else None


def _lacks(models: frozenset[str] | None, served: Collection[str]) -> str | None:
    if models is None or models.issuperset(served):
        return None
    lacking = [name for name in served if name not in models]
    return f"serves {_few(models)}, not {_few(lacking)}"


def _unknown(models: frozenset[str] | None, served: Collection[str]) -> str | None:
    if models is None:
        return "does not say which models it serves, and the pool lists none"
    if models and served and models.issuperset(served):
        return None
    return f"serves {_few(models)}: no model that all endpoints have"


def _few(names: Collection[str]) -> str:
    """Some of the names."""
    if not names:
        return "no model"
    shown = sorted(names)[:_SHOWN]
    more = len(names) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more else "")
