"""One HTTP exchange with an endpoint: a lean client for the hot path, and the same client under httpx."""

from fairpool_gateway.upstream.client import Client, message_head, request_head
from fairpool_gateway.upstream.response import Response
from fairpool_gateway.upstream.target import Target, Timeouts, Tls
from fairpool_gateway.upstream.transport import Transport

__all__ = ["Client", "Response", "Target", "Timeouts", "Tls", "Transport", "message_head", "request_head"]
