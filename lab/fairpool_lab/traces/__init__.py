"""Traces: who asked for how much, and when, in real traffic; read, cut and given weights for a replay."""

from fairpool_lab.traces.demand import WEIGHT_RULE, busiest, weights
from fairpool_lab.traces.layout import LAYOUTS, Layout, named
from fairpool_lab.traces.reading import EXCERPT, FORMATS, parse, read, stream
from fairpool_lab.traces.request import Trace, TraceRequest

__all__ = [
    "EXCERPT",
    "FORMATS",
    "LAYOUTS",
    "WEIGHT_RULE",
    "Layout",
    "Trace",
    "TraceRequest",
    "busiest",
    "named",
    "parse",
    "read",
    "stream",
    "weights",
]
