"""Requests as engines served them: where tokens came when, which no dispatch tells.

A simulated engine knows all of it. A gateway's log knows the slot that a request had: there service counts as given
evenly from dispatch to completion, and the first token's time stays unknown.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from fairpool_gateway.decision_log import Complete
from fairpool_lab.decisions import Event
from fairpool_lab.measures import history
from fairpool_lab.measures.distribution import Distribution


@dataclass(frozen=True, slots=True)
class Served:
    """One request that was answered in full. Times in seconds, by one clock for all requests.

    Attributes:
        tenant: whose it is.
        arrived: when it joined the queue.
        begun: when its tokens began to come: at its first output token.
        ended: when the last one had come.
        input_tokens: how many it read.
        output_tokens: how many it wrote.
    """

    tenant: str
    arrived: float
    begun: float
    ended: float
    input_tokens: int
    output_tokens: int


def of_log(events: Iterable[Event]) -> tuple[Served, ...]:
    """What a log tells, in order of completion; requests whose use was not told were not answered in full."""
    events = tuple(events)
    records = history.requests(events)
    found = []
    for event in events:
        if isinstance(event, Complete) and event.used is not None and event.seq in records:
            record = records[event.seq]
            begun = event.t if record.dispatched is None else record.dispatched
            found.append(
                Served(record.tenant, record.arrived, begun, event.t, event.used.input, event.used.output),
            )
    return tuple(found)


def first_tokens(served: Iterable[Served]) -> dict[str, Distribution]:
    """The seconds from arrival to the first output token, by tenant."""
    return _by_tenant(served, lambda request: request.begun - request.arrived)


def slowdowns(served: Iterable[Served], alone: Callable[[Served], float]) -> dict[str, Distribution]:
    """How many times longer than alone requests took, from arrival to the last token, by tenant.

    Args:
        served: the requests.
        alone: the seconds, above 0, that such a request takes in an engine that does nothing else.
    """
    return _by_tenant(served, lambda request: (request.ended - request.arrived) / alone(request))


def _by_tenant(served: Iterable[Served], figure: Callable[[Served], float]) -> dict[str, Distribution]:
    figures = defaultdict[str, list[float]](list)
    for request in served:
        figures[request.tenant].append(figure(request))
    return {tenant: Distribution.of(figures[tenant]) for tenant in sorted(figures)}
