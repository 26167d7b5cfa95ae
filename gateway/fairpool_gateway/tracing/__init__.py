"""Spans of what a request goes through, for whoever follows it across services.

There are three: the request as its tenant sees it, its wait in the queue, and each exchange with an endpoint, which
gets that exchange's `traceparent`. They are made only where the standard `OTEL_*` variables ask for them; otherwise
none of OpenTelemetry's SDK is imported, and what a tenant sends of a trace passes on as it is. Neither a prompt nor a
credential is ever in a span.
"""

from fairpool_gateway.tracing.configured import configured
from fairpool_gateway.tracing.trace import Trace, Tracing

__all__ = ["Trace", "Tracing", "configured"]
