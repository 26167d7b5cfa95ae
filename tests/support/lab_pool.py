"""A pool in miniature: an order, some slots and a decision log, on fake time. Requests cost what they really use."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from heapq import heappop, heappush
from typing import Any

from fairpool_gateway.cost import Used
from fairpool_gateway.decision_log import DecisionLog
from fairpool_gateway.sfq import Scheduler
from fairpool_lab.traces import TraceRequest


def run(
    trace: Sequence[TraceRequest],
    *,
    weights: Mapping[str, int],
    slots: int = 4,
    tokens_per_second: float = 400.0,
    ordering: Callable[..., Any] = Scheduler,
) -> list[bytes]:
    """Replay a trace; returns the lines of the decision log. Each slot works at `tokens_per_second`."""
    lines: list[bytes] = []
    log = DecisionLog(lines.append, pool="miniature", weights=weights, default_weight=1)
    order = ordering(lambda number: trace[number].tokens, weights=weights, default_weight=1)
    ends: list[tuple[float, int]] = []
    arriving = 0
    while arriving < len(trace) or ends:
        if not ends or (arriving < len(trace) and trace[arriving].arrival <= ends[0][0]):
            request = trace[arriving]
            now, tenant = request.arrival, order.arrive(request.tenant, arriving)
            log.arrive(now, tenant, order.weight(tenant), f"r{arriving}", request.tokens)
            arriving += 1
        else:
            now, number = heappop(ends)
            used = Used(trace[number].input_tokens, trace[number].output_tokens)
            log.complete(now, trace[number].tenant, f"r{number}", "e0", used)
        while len(ends) < slots:
            before, decision = order.v, order.dispatch()
            if decision is None:
                if order.v != before:
                    log.reset(now, order.v)
                break
            log.dispatch(now, decision, f"r{decision.request}", order.v, "e0")
            heappush(ends, (now + decision.cost / tokens_per_second, decision.request))
    return lines
