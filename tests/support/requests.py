"""Requests for tests that do not care what is in them."""

from fairpool_gateway.cost import Shape
from fairpool_gateway.dispatcher import Request


def request(request_id: str, tenant: str, *, text_bytes: int = 400, size: int = 400) -> Request:
    """One chat request of that much text."""
    shape = Shape(
        model="sim",
        stream=False,
        text_bytes=text_bytes,
        input_tokens=0,
        choices=1,
        max_tokens=None,
        generates=True,
    )
    return Request(request_id, tenant, shape, size)
