"""Traces: who asked for how much, and when, in real traffic; read, cut and given weights for a replay."""

from fairpool_lab.traces.demand import WEIGHT_RULE, busiest, weights
from fairpool_lab.traces.reading import EXCERPT, parse, read
from fairpool_lab.traces.request import Trace, TraceRequest

__all__ = ["EXCERPT", "WEIGHT_RULE", "Trace", "TraceRequest", "busiest", "parse", "read", "weights"]
