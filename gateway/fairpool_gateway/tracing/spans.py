"""The spans themselves, by OpenTelemetry's SDK and its conventions for HTTP and generative AI.

Only `configured` imports this module, and only when spans are wanted. What always holds: each span that began ends, at
the latest with its request; and what is in them was found good before (models, tenants) or is ours.
"""

from __future__ import annotations

import os
from typing import Final

from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import SERVICE_NAME, Resource
from opentelemetry.sdk.trace import SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import Span, SpanKind, Status, StatusCode, set_span_in_context
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from fairpool_gateway.cost import Api, Used
from fairpool_gateway.dispatcher import Request
from fairpool_gateway.endpoints import EndpointSpec
from fairpool_gateway.errors import UpstreamError
from fairpool_gateway.tallies import ANSWER_BROKEN
from fairpool_gateway.tracing.trace import Headers, Trace

_OPERATIONS: Final = {
    Api.CHAT: "chat",
    Api.COMPLETIONS: "text_completion",
    Api.EMBEDDINGS: "embeddings",
    Api.RESPONSES: "chat",
    Api.MESSAGES: "chat",
}
_CONTEXT_HEADERS: Final = (b"traceparent", b"tracestate")

_propagator = TraceContextTextMapPropagator()


class Spans:
    """Makes spans for one pool, and hands them to a processor when they end."""

    def __init__(self, pool: str, processor: SpanProcessor) -> None:
        self._pool = pool
        named = {} if _service_is_named() else {SERVICE_NAME: "fairpool-gateway"}
        self._provider = TracerProvider(resource=Resource.create(named), shutdown_on_exit=False)
        self._provider.add_span_processor(processor)
        self._tracer = self._provider.get_tracer("fairpool_gateway")

    def begin(self, headers: Headers, api: Api, path: str, request_id: bytes) -> Trace:
        """The trace of a request with these headers; its span is a child of the one that `traceparent` names."""
        attributes = {
            "http.request.method": "POST",
            "http.route": path,
            "fairpool.pool": self._pool,
            "fairpool.request_id": request_id.decode(),
        }
        span = self._tracer.start_span(
            f"POST {path}", context=_context_in(headers), kind=SpanKind.SERVER, attributes=attributes
        )
        return _SpanTrace(self, span, _OPERATIONS.get(api, api.name.lower()))

    def child(self, parent: Context, name: str, kind: SpanKind, attributes: dict[str, str | int | bool]) -> Span:
        """A span inside another."""
        return self._tracer.start_span(name, context=parent, kind=kind, attributes=attributes)

    def close(self) -> None:
        """Send what has yet to be sent."""
        self._provider.shutdown()


class _SpanTrace:
    """The spans of one request: its own, and the one of the phase that it is in."""

    __slots__ = ("_attempts", "_inside", "_operation", "_phase", "_request", "_span", "_spans")

    def __init__(self, spans: Spans, span: Span, operation: str) -> None:
        self._spans = spans
        self._span = span
        self._inside = set_span_in_context(span, Context())
        self._operation = operation
        self._phase: Span | None = None
        self._request: Request | None = None
        self._attempts = 0

    def waits(self, request: Request) -> None:
        """The span of its wait begins."""
        self._request = request
        self._phase = self._spans.child(self._inside, "queue", SpanKind.INTERNAL, {"fairpool.tenant": request.tenant})

    def sends(self, endpoint: EndpointSpec, headers: Headers) -> Headers:
        """The span of its wait ends, that of an exchange begins, as the parent of whatever the endpoint does."""
        request = self._request
        assert request is not None
        if self._phase is not None:
            self._phase.set_attribute("fairpool.cost", request.cost)
        self._end_phase()
        self._attempts += 1
        attributes: dict[str, str | int | bool] = {
            "gen_ai.operation.name": self._operation,
            "gen_ai.request.model": request.shape.model,
            "gen_ai.request.stream": request.shape.stream,
            "server.address": endpoint.host,
            "server.port": endpoint.port,
            "fairpool.tenant": request.tenant,
            "fairpool.endpoint": endpoint.id,
            "fairpool.attempt": self._attempts,
        }
        if request.shape.max_tokens is not None:
            attributes["gen_ai.request.max_tokens"] = request.shape.max_tokens
        name = f"{self._operation} {request.shape.model}"
        self._phase = self._spans.child(self._inside, name, SpanKind.CLIENT, attributes)
        carrier: dict[str, str] = {}
        _propagator.inject(carrier, set_span_in_context(self._phase, Context()))
        kept = [header for header in headers if header[0] not in _CONTEXT_HEADERS]
        return [*kept, *((name.encode(), value.encode()) for name, value in carrier.items())]

    def answered(self, status: int) -> None:
        """The first byte came."""
        if self._phase is not None:
            self._phase.add_event("first byte")
            _set_status(self._phase, status, least_error=400)

    def failed(self, error: UpstreamError) -> None:
        """The span of an exchange ends in failure."""
        if self._phase is not None:
            self._phase.set_attribute("error.type", type(error).__name__)
            self._phase.set_status(Status(StatusCode.ERROR, str(error)))
        self._end_phase()

    def finished(self, used: Used | None) -> None:
        """The span of an exchange ends."""
        if used is not None:
            for span in (self._phase, self._span):
                if span is not None:
                    span.set_attribute("gen_ai.usage.input_tokens", used.input)
                    span.set_attribute("gen_ai.usage.output_tokens", used.output)
        self._end_phase()

    def end(self, tenant: str | None, reason: str, status: int) -> None:
        """All that is left ends."""
        if status:
            _set_status(self._span, status, least_error=500)
        if self._phase is not None:
            self._phase.set_attribute("fairpool.reason", reason)
        self._end_phase()
        if self._request is not None:
            tenant = self._request.tenant
            self._span.set_attribute("gen_ai.operation.name", self._operation)
            self._span.set_attribute("gen_ai.request.model", self._request.shape.model)
        if tenant is not None:
            self._span.set_attribute("fairpool.tenant", tenant)
        self._span.set_attribute("fairpool.reason", reason)
        if reason == ANSWER_BROKEN:
            self._span.set_status(Status(StatusCode.ERROR, "the answer broke off"))
        self._span.end()

    def _end_phase(self) -> None:
        if self._phase is not None:
            self._phase.end()
            self._phase = None


def over_otlp(pool: str) -> Spans:
    """Spans that are sent over OTLP, to where and how the environment says."""
    return Spans(pool, BatchSpanProcessor(OTLPSpanExporter()))


def _set_status(span: Span, status: int, *, least_error: int) -> None:
    span.set_attribute("http.response.status_code", status)
    if status >= least_error:
        span.set_attribute("error.type", str(status))
        span.set_status(Status(StatusCode.ERROR))


def _service_is_named() -> bool:
    return bool(os.environ.get("OTEL_SERVICE_NAME")) or "service.name=" in os.environ.get(
        "OTEL_RESOURCE_ATTRIBUTES", ""
    )


def _context_in(headers: Headers) -> Context:
    """The caller's span; none if its header is there twice, for then nobody can tell which is meant."""
    parents = [value for name, value in headers if name == b"traceparent"]
    states = [value for name, value in headers if name == b"tracestate"]
    if len(parents) != 1:
        return Context()
    carrier = {"traceparent": parents[0].decode("latin-1"), "tracestate": b",".join(states).decode("latin-1")}
    return _propagator.extract(carrier, Context())
