"""A gateway's decision log as a trace: what its tenants asked for, to be replayed in another order.

Only requests whose endpoint told their usage are replayed: of what was cancelled, refused or failed nobody knows what
it would have taken.
"""

from __future__ import annotations

from collections.abc import Iterable

from fairpool_gateway.decision_log import Arrive, Complete
from fairpool_lab import decisions
from fairpool_lab.errors import LogInvalid, TraceInvalid
from fairpool_lab.traces.request import TraceRequest
from fairpool_lab.traces.table import Numbered


def logged(lines: Iterable[str], name: str) -> Numbered:
    """The requests of a decision log, in order of arrival, which counts from the log's first event."""
    found: dict[int, TraceRequest] = {}
    latest: dict[str, tuple[int, Arrive]] = {}
    try:
        _, events = decisions.stream((line.encode() for line in lines), name)
        began = None
        for event in events:
            began = event.t if began is None else began
            if isinstance(event, Arrive):
                latest[event.request] = (event.seq, event)
            elif isinstance(event, Complete) and event.used is not None and event.request in latest:
                seq, arrived = latest[event.request]
                used = event.used
                found[seq] = TraceRequest(arrived.t - began, arrived.tenant, used.input, used.output)
    except LogInvalid as error:
        raise TraceInvalid(error.source, error.line, error.problem) from error
    for seq in sorted(found):
        yield seq + 2, found[seq]  # The header is line 1, and event 0 line 2.
