"""What a trace asks for: its busiest stretch, and weights that have heavy and light tenants each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final

from fairpool_lab.traces.request import Trace, TraceRequest

WEIGHT_RULE: Final = (
    "Tenants ranked by the tokens they ask for (input + 2 x output), the heaviest first, get weights 4, 2, 1 in turn."
)


def busiest(trace: Sequence[TraceRequest], seconds: float) -> Trace:
    """The stretch of that length in which most tokens are asked for, the earliest of several; it begins at 0 s.

    A stretch begins with a request and ends before `seconds` have passed; tokens count as in `TraceRequest.tokens`.
    """
    most, first, last = 0, 0, 0
    tokens, end = 0, 0
    for begin, request in enumerate(trace):
        while end < len(trace) and trace[end].arrival < request.arrival + seconds:
            tokens += trace[end].tokens
            end += 1
        if tokens > most:
            most, first, last = tokens, begin, end
        tokens -= request.tokens
    return tuple(replace(request, arrival=request.arrival - trace[first].arrival) for request in trace[first:last])


def weights(trace: Iterable[TraceRequest]) -> dict[str, int]:
    """A weight for each tenant by `WEIGHT_RULE`, so that every weight has heavy and light tenants; ties go by name."""
    demand = Counter[str]()
    for request in trace:
        demand[request.tenant] += request.tokens
    ranked = sorted(demand, key=lambda tenant: (-demand[tenant], tenant))
    return {tenant: (4, 2, 1)[rank % 3] for rank, tenant in enumerate(ranked)}
