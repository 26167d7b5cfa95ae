"""Reading what an answer used out of its bytes as they pass, never changing one (DESIGN §5)."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from fairpool_gateway.usage.inflate import Inflated
from fairpool_gateway.usage.reading import Reading, Unread, UsageReader
from fairpool_gateway.usage.stream import StreamReader
from fairpool_gateway.usage.whole import WholeReader

__all__ = ["Reading", "UsageReader", "usage_reader"]


def usage_reader(content_type: bytes, content_encoding: bytes) -> UsageReader:
    """The reader for an answer with these headers, of whichever API; one that reads nothing, if it is not known how."""
    return _maker(content_type, content_encoding)()


@lru_cache(maxsize=256)
def _maker(content_type: bytes, content_encoding: bytes) -> Callable[[], UsageReader]:
    """What makes such readers; an engine says the same of its answers time and again."""
    make = _plain_reader(content_type.partition(b";")[0].strip().lower())
    match content_encoding.strip().lower():
        case b"" | b"identity":
            return make
        case b"gzip" | b"x-gzip" | b"deflate":
            return lambda: Inflated(make())
    return Unread


def _plain_reader(media_type: bytes) -> Callable[[], UsageReader]:
    if media_type == b"text/event-stream":
        return StreamReader
    if media_type in {b"", b"application/json"} or media_type.endswith(b"+json"):
        return WholeReader
    return Unread
