"""What a simulated run leaves behind: its decision log, its requests, and what the engines did for each tenant."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from fairpool_lab.decisions import Log
from fairpool_lab.measures.served import Served
from fairpool_lab.simulation.request import End, SimulatedRequest


class Service(NamedTuple):
    """What one engine did for one tenant at one moment, in tokens; `cached` ones had not to be computed."""

    at: float
    tenant: str
    input: int
    cached: int
    output: int


@dataclass(frozen=True, slots=True)
class Run:
    """A run that has come to its end.

    Attributes:
        log: every decision, as a gateway logs them.
        requests: every request that arrived, in order of arrival; each has ended.
        service: what the engines did, in order of time.
        events: how many events the simulator handled.
    """

    log: Log
    requests: tuple[SimulatedRequest, ...]
    service: tuple[Service, ...]
    events: int

    @property
    def seconds(self) -> float:
        """When the last request ended."""
        return max((request.ended or 0.0 for request in self.requests), default=0.0)

    def ended(self, end: End) -> int:
        """How many requests ended so."""
        return sum(request.end is end for request in self.requests)

    def served(self) -> tuple[Served, ...]:
        """Every request that was answered in full, as the measures of service take it."""
        return tuple(
            Served(
                request.tenant,
                request.arrived,
                request.ended if request.first_token is None else request.first_token,
                request.ended,
                request.input_tokens,
                request.output_tokens,
            )
            for request in self.requests
            if request.end is End.COMPLETED and request.ended is not None
        )
