"""Traces: who asked for how much, and when, in real traffic; read, cut and given weights for a replay."""

from fairpool_lab.traces.dealing import dealt
from fairpool_lab.traces.demand import WEIGHT_RULE, busiest, weights
from fairpool_lab.traces.layout import EVERYBODY, LAYOUTS, Layout, named
from fairpool_lab.traces.reading import EXCERPT, FORMATS, MOST_TENANTS, parse, read, stream
from fairpool_lab.traces.request import Trace, TraceRequest

__all__ = [
    "EVERYBODY",
    "EXCERPT",
    "FORMATS",
    "LAYOUTS",
    "MOST_TENANTS",
    "WEIGHT_RULE",
    "Layout",
    "Trace",
    "TraceRequest",
    "busiest",
    "dealt",
    "named",
    "parse",
    "read",
    "stream",
    "weights",
]
