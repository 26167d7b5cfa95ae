"""What each tenant received of the service given, beside what it was entitled to.

Shares are compared while demand lasts. In the end everybody has received what it asked for, under any order, so the
figures are cut at a moment: at the last arrival unless told otherwise. In the fluid reference a request arrives with
the weight in tokens that its dispatch will have, not with what was estimated when it came: both sides count alike.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from fairpool_gateway.decision_log import Arrive, Dispatch, Remove, Weight
from fairpool_lab.decisions import Event, Log
from fairpool_lab.measures import history
from fairpool_lab.measures.fluid import Fluid


@dataclass(frozen=True, slots=True)
class TenantShare:
    """One tenant's part at the cut, in tokens as the measure counts them.

    Attributes:
        tenant: its name.
        weight: its weight at the cut.
        requests: how many had arrived.
        dispatched: how many of these had been dispatched.
        entitled: tokens that the fluid reference gave it.
        received: tokens of its dispatches.
        entitled_share: `entitled` as a part of all tokens given to anybody.
        received_share: `received` as a part of them.
    """

    tenant: str
    weight: int
    requests: int
    dispatched: int
    entitled: float
    received: int
    entitled_share: float
    received_share: float

    @property
    def difference(self) -> float:
        """By how much the received share exceeds the entitled one."""
        return self.received_share - self.entitled_share


@dataclass(frozen=True, slots=True)
class Shares:
    """Every tenant's part at the cut.

    Attributes:
        until: the time of the cut.
        served: tokens given to all tenants.
        untold: dispatches whose endpoint told no usage: what they really used is not known.
        tenants: the parts, by name of tenant.
    """

    until: float
    served: int
    untold: int
    tenants: tuple[TenantShare, ...]

    @property
    def greatest_difference(self) -> float:
        """The greatest `|received - entitled|`, as a part of all tokens given."""
        return max((abs(tenant.difference) for tenant in self.tenants), default=0.0)


def shares(log: Log, *, until: float | None = None, measure: history.Measure = history.charged) -> Shares:
    """Compare what was received with what was due.

    Args:
        log: the decision log of the run.
        until: the time of the cut, by the log's clock, events at that time included; by default the last arrival,
            without the events that follow it.
        measure: how requests are weighed.
    """
    events = log.events[: _cut(log.events, until)]
    tally = _Tally(log, measure)
    for event in events:
        tally.observe(event)
    return tally.shares(events[-1].t if events and until is None else until or 0.0)


class _Tally:
    """Counts what arrives and what is given, and lets the fluid reference see the same."""

    def __init__(self, log: Log, measure: history.Measure) -> None:
        self._records = history.requests(log.events)
        self._measure = measure
        self._fluid = Fluid()
        self._own = set(log.header.weights)
        self._weights: dict[str, int] = {}
        self._arrived = Counter[str]()
        self._dispatched = Counter[str]()
        self._received = Counter[str]()
        self._untold = 0

    def observe(self, event: Event) -> None:
        match event:
            case Arrive(tenant=tenant, weight=weight):
                self._weights[tenant] = weight
                self._arrived[tenant] += 1
                self._fluid.arrive(tenant, self._measure(self._records[event.seq]), weight)
            case Dispatch(tenant=tenant, weight=weight):
                record = self._records[event.seq]
                self._reweigh(tenant, weight)
                self._fluid.serve(self._measure(record))
                self._dispatched[tenant] += 1
                self._received[tenant] += self._measure(record)
                self._untold += record.used is None
            case Remove(tenant=tenant):
                self._fluid.remove(tenant, self._measure(self._records[event.seq]))
            case Weight(tenant=None, weight=weight):
                for tenant in self._weights.keys() - self._own:
                    self._reweigh(tenant, weight)
            case Weight(tenant=str(tenant), weight=weight):
                self._own.add(tenant)
                self._reweigh(tenant, weight)

    def shares(self, until: float) -> Shares:
        served = self._received.total()
        return Shares(until, served, self._untold, tuple(self._tenant(name, served) for name in sorted(self._weights)))

    def _reweigh(self, tenant: str, weight: int) -> None:
        self._weights[tenant] = weight
        self._fluid.reweigh(tenant, weight)

    def _tenant(self, tenant: str, served: int) -> TenantShare:
        entitled, received = self._fluid.entitled(tenant), self._received[tenant]
        return TenantShare(
            tenant=tenant,
            weight=self._weights[tenant],
            requests=self._arrived[tenant],
            dispatched=self._dispatched[tenant],
            entitled=entitled,
            received=received,
            entitled_share=entitled / served if served else 0.0,
            received_share=received / served if served else 0.0,
        )


def _cut(events: Sequence[Event], until: float | None) -> int:
    """How many of the events count."""
    if until is None:
        return max((event.seq + 1 for event in events if isinstance(event, Arrive)), default=0)
    return next((number for number, event in enumerate(events) if event.t > until), len(events))
