"""Outcomes of runs in miniature, in any order, for what looks at two of them side by side."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from support import lab_pool

from fairpool_lab import traces
from fairpool_lab.demo.outcome import Outcome, outcome
from fairpool_lab.demo.replay import Answer
from fairpool_lab.policies.arrival_order import ArrivalOrder

TRACE = traces.busiest(traces.read(traces.EXCERPT), 60)
WEIGHTS = traces.weights(TRACE)
ANSWERS = [Answer(request.tenant, streamed=False, output_tokens=request.output_tokens, error=None) for request in TRACE]


def in_miniature(order: str, directory: Path, answers: Sequence[Answer] = ANSWERS, **pool: Any) -> Outcome:
    """The outcome of a run of the trace, by default under contention; `arrival order` or `fair`."""
    settings: dict[str, Any] = {"slots": 4, "tokens_per_second": 300.0}
    if order == "arrival order":
        settings["ordering"] = ArrivalOrder
    path = directory / f"{order}.decisions.jsonl"
    path.write_bytes(b"".join(lab_pool.run(TRACE, weights=WEIGHTS, **{**settings, **pool})))
    return outcome(order, path, answers, len(TRACE))
