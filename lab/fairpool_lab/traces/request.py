"""One request of a trace, whatever file it was read from."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TraceRequest:
    """One request of a trace: when it arrives, in seconds, whose it is, and how many tokens it takes."""

    arrival: float
    tenant: str
    input_tokens: int
    output_tokens: int

    @property
    def tokens(self) -> int:
        """Its cost by the pool's defaults: input tokens, and output tokens twice."""
        return self.input_tokens + 2 * self.output_tokens


Trace = tuple[TraceRequest, ...]
"""Requests in order of arrival."""
