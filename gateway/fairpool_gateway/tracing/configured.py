"""Whether the environment asks for spans, and what is said where they cannot be had.

The standard variables count: spans are sent where `OTEL_EXPORTER_OTLP_ENDPOINT` or `OTEL_EXPORTER_OTLP_TRACES_ENDPOINT`
says where to or `OTEL_TRACES_EXPORTER` is `otlp`, unless that is `none` or `OTEL_SDK_DISABLED` is true. The SDK itself
reads all others. A gateway whose spans cannot be had says so once, and serves.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from importlib import import_module

from fairpool_gateway.tracing.trace import Tracing

_ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
_PROTOCOLS = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")

log = logging.getLogger(__name__)


def configured(environment: Mapping[str, str], pool: str) -> Tracing | None:
    """The tracing of this pool that the environment asks for, if it does."""
    if not _wanted(environment):
        return None
    protocol = _first(environment, _PROTOCOLS) or "http/protobuf"
    if protocol != "http/protobuf":
        log.warning(
            "no spans are sent: OTLP is spoken as http/protobuf only, and the environment asks for %s", protocol
        )
        return None
    try:
        spans = import_module("fairpool_gateway.tracing.spans")
    except ModuleNotFoundError as missing:
        log.warning("no spans are sent: %s is not installed: pip install '.[tracing]' in a checkout", missing.name)
        return None
    tracing: Tracing = spans.over_otlp(pool)
    return tracing


def _wanted(environment: Mapping[str, str]) -> bool:
    if environment.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return False
    exporter = environment.get("OTEL_TRACES_EXPORTER", "").strip().lower()
    if exporter in {"", "otlp"}:
        return exporter == "otlp" or _first(environment, _ENDPOINTS) is not None
    if exporter != "none":
        log.warning("no spans are sent: OTEL_TRACES_EXPORTER can be otlp or none here, not %s", exporter)
    return False


def _first(environment: Mapping[str, str], names: tuple[str, ...]) -> str | None:
    return next((value for name in names if (value := environment.get(name, "").strip())), None)
