"""The decision log: one JSON object a line, from which anyone can recompute every figure of fairness.

The first line is a `Header`; each further line is one event in the order in which the dispatcher saw it, numbered
by `seq` from 0 without gaps. Charges and tags are exact integers in units of `1/q` token, of any size: read them
with a parser that keeps integers whole. The same events give the same bytes in every process. Neither a prompt nor
a credential is ever in it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from fairpool_gateway.cost import Used
from fairpool_gateway.sfq import Decision, Q


class Line(msgspec.Struct, frozen=True, tag_field="event"):
    """What every line of the log is."""


class Header(Line, frozen=True, tag="header"):
    """The first line. `weights` holds the tenants that have a weight of their own; `q` the units per token."""

    q: int
    pool: str
    default_weight: int
    weights: dict[str, int]


class Event(Line, frozen=True):
    """One event: its number, and the time in seconds by the gateway's monotonic clock."""

    seq: int
    t: float


class Arrive(Event, frozen=True, tag="arrive"):
    """A request joined its tenant's queue; `cost` is what it was estimated to cost then."""

    tenant: str
    weight: int
    request: str
    cost: int


class Dispatch(Event, frozen=True, tag="dispatch", omit_defaults=True):
    """A request was given a slot and charged for `cost`. `v` is virtual time after it, equal to `start_tag` under SFQ.

    `estimate` is there where it is another than `cost`, in which then is what earlier estimates were off by.
    """

    tenant: str
    weight: int
    request: str
    cost: int
    charge: int
    start_tag: int
    v: int
    endpoint: str
    estimate: int | None = None


class Remove(Event, frozen=True, tag="remove"):
    """A waiting request left its queue undispatched: its client left, or it was refused."""

    tenant: str
    request: str


class Complete(Event, frozen=True, tag="complete"):
    """A slot was given back; `used` is null where the request was cancelled, failed, or told no usage."""

    tenant: str
    request: str
    endpoint: str
    used: Used | None


class Weight(Event, frozen=True, tag="weight"):
    """A tenant's weight changed; it counts from its next charge. A tenant of null: the default weight."""

    tenant: str | None
    weight: int


class Reset(Event, frozen=True, tag="reset"):
    """A free slot found nobody backlogged: `v` moved to the greatest finish tag, all meters were forgotten."""

    v: int


class DecisionLog:
    """Numbers and writes events through `write`, which gets whole lines and must not block for long."""

    def __init__(
        self, write: Callable[[bytes], Any], *, pool: str, weights: Mapping[str, int], default_weight: int
    ) -> None:
        self._write = write
        self._encode = msgspec.json.Encoder().encode
        self._seq = 0
        self._line(Header(q=Q, pool=pool, default_weight=default_weight, weights=dict(sorted(weights.items()))))

    def arrive(self, now: float, tenant: str, weight: int, request: str, cost: int) -> None:
        """A request joined its tenant's queue."""
        self._line(Arrive(self._next(), now, tenant, weight, request, cost))

    def dispatch(
        self, now: float, decision: Decision[Any], request: str, v: int, endpoint: str, estimate: int | None = None
    ) -> None:
        """A decision was carried out: `request` runs on `endpoint`. `estimate`: what it was estimated to cost."""
        self._line(
            Dispatch(
                self._next(),
                now,
                decision.tenant,
                decision.weight,
                request,
                decision.cost,
                decision.charge,
                decision.start_tag,
                v,
                endpoint,
                None if estimate == decision.cost else estimate,
            )
        )

    def remove(self, now: float, tenant: str, request: str) -> None:
        """A waiting request left its queue."""
        self._line(Remove(self._next(), now, tenant, request))

    def complete(self, now: float, tenant: str, request: str, endpoint: str, used: Used | None) -> None:
        """A slot was given back."""
        self._line(Complete(self._next(), now, tenant, request, endpoint, used))

    def weight(self, now: float, tenant: str | None, weight: int) -> None:
        """A weight changed."""
        self._line(Weight(self._next(), now, tenant, weight))

    def reset(self, now: float, v: int) -> None:
        """The meters were forgotten."""
        self._line(Reset(self._next(), now, v))

    def _next(self) -> int:
        seq = self._seq
        self._seq = seq + 1
        return seq

    def _line(self, line: Line) -> None:
        self._write(self._encode(line) + b"\n")
