"""One request of a trace, whatever file it was read from."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TraceRequest:
    """One request: when it arrives, in seconds, whose it is, and how many tokens it takes.

    Attributes:
        arrival: seconds, from the beginning of the trace or from wherever its file counts.
        tenant: whose it is.
        input_tokens: the tokens that it reads.
        output_tokens: the tokens that it writes.
        max_tokens: the most that it allows to be written, where the trace tells.
        prefix: the blocks of its prompt from the first on, where the trace tells: what begins alike has equal blocks.
    """

    arrival: float
    tenant: str
    input_tokens: int
    output_tokens: int
    max_tokens: int | None = None
    prefix: tuple[int, ...] = ()

    @property
    def tokens(self) -> int:
        """Its cost by the pool's defaults: input tokens, and output tokens twice."""
        return self.input_tokens + 2 * self.output_tokens


Trace = tuple[TraceRequest, ...]
"""Requests in order of arrival."""
