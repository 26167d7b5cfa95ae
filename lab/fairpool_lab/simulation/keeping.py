"""Keeps the decisions of a run in memory, as the events that a gateway's decision log holds.

A simulated run and a real one are thus measured by the same code, and no figure depends on who ran it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from fairpool_gateway.decision_log import DecisionLog, Header, Line
from fairpool_lab.decisions import Event, Log


class KeptDecisions(DecisionLog):
    """A decision log that is never written."""

    def __init__(self, *, pool: str, weights: Mapping[str, int], default_weight: int) -> None:
        self._lines: list[Line] = []
        super().__init__(_nowhere, pool=pool, weights=weights, default_weight=default_weight)

    def log(self) -> Log:
        """What was decided so far."""
        header, *events = self._lines  # the header is always first, and nothing but events follows
        return Log(cast("Header", header), tuple(cast("list[Event]", events)))

    def _line(self, line: Line) -> None:
        self._lines.append(line)


def _nowhere(_: bytes) -> None:
    """Events are kept as they are, so no line is ever made of one."""
