"""One record per request, put together from a log's events: what the measures of waiting and of shares look up."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from fairpool_gateway.cost import Used
from fairpool_gateway.decision_log import Arrive, Complete, Dispatch, Remove
from fairpool_lab.decisions import Event


@dataclass(slots=True)
class Request:
    """What became of one request. Times in seconds by the log's clock; None for what never happened.

    Attributes:
        tenant: whose it is.
        arrived: when it joined the queue.
        estimate: its cost as estimated then.
        dispatched: when it was given a slot.
        cost: what it was charged for, in tokens.
        completed: when it last gave back a slot.
        used: the tokens it really used, where its endpoint told them.
    """

    tenant: str
    arrived: float
    estimate: int
    dispatched: float | None = None
    cost: int | None = None
    completed: float | None = None
    used: Used | None = None


def requests(events: Iterable[Event]) -> dict[int, Request]:
    """The records of all requests, each under the number (`seq`) of every event that concerns it.

    Records are filled in as the events pass: an arrival's record already tells what happens later.
    """
    records: dict[int, Request] = {}
    latest: dict[str, Request] = {}
    for event in events:
        match event:
            case Arrive():
                latest[event.request] = Request(event.tenant, event.t, event.cost)
            case Dispatch():
                latest[event.request].dispatched = event.t
                latest[event.request].cost = event.cost
            case Complete() if event.request in latest:
                latest[event.request].completed = event.t
                latest[event.request].used = event.used or latest[event.request].used
            case Remove():
                pass
            case _:
                continue
        records[event.seq] = latest[event.request]
    return records


Measure = Callable[[Request], int]
"""How a request is weighed, in tokens; the same at its arrival, its dispatch and its removal."""


def charged(request: Request) -> int:
    """The cost that the request was charged for, or would have been at its arrival if it never was."""
    return request.estimate if request.cost is None else request.cost


def really_used(input_weight: int, output_weight: int) -> Measure:
    """The tokens that the request really used, weighed as the pool weighs them; where none were told, `charged`."""

    def measure(request: Request) -> int:
        if request.used is None:
            return charged(request)
        return input_weight * request.used.input + output_weight * request.used.output

    return measure
