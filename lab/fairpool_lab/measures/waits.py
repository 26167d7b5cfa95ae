"""How long requests waited for their slot, and how long tenants went without any.

All dispatched requests count, also those dispatched after the last arrival: a cut there would hide the longest waits.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable

from fairpool_gateway.decision_log import Arrive, Dispatch, Remove
from fairpool_lab.decisions import Event
from fairpool_lab.measures import history
from fairpool_lab.measures.distribution import Distribution


def waits(events: Iterable[Event]) -> dict[str, Distribution]:
    """The seconds from arrival to dispatch, of each tenant that was ever dispatched, by name."""
    events = tuple(events)
    records = history.requests(events)
    seconds = defaultdict[str, list[float]](list)
    for event in events:
        if isinstance(event, Dispatch):
            seconds[event.tenant].append(event.t - records[event.seq].arrived)
    return {tenant: Distribution.of(seconds[tenant]) for tenant in sorted(seconds)}


def droughts(events: Iterable[Event]) -> dict[str, float]:
    """The longest time that each tenant stayed backlogged without a dispatch of its own, in seconds, by name.

    A drought begins when the tenant becomes backlogged or is dispatched, and ends with its next dispatch, with the
    removal of the last request that waits, or with the events. Only a tenant that is never dispatched for as long as
    it waits starves; one long wait behind one's own requests is none.
    """
    waiting = Counter[str]()
    since: dict[str, float] = {}
    longest: dict[str, float] = {}
    now = 0.0

    def ended(tenant: str) -> None:
        longest[tenant] = max(longest.get(tenant, 0.0), now - since[tenant])

    for event in events:
        now = event.t
        match event:
            case Arrive(tenant=tenant):
                if not waiting[tenant]:
                    since[tenant] = now
                waiting[tenant] += 1
            case Dispatch(tenant=tenant):
                ended(tenant)
                since[tenant] = now
                waiting[tenant] -= 1
            case Remove(tenant=tenant):
                waiting[tenant] -= 1
                if not waiting[tenant]:
                    ended(tenant)
    for tenant in +waiting:
        ended(tenant)
    return {tenant: longest[tenant] for tenant in sorted(longest)}
