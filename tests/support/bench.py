"""Results of benchmarks that nobody ran, to see what is made of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from fairpool_lab.bench.results import Decided, Measured, Results, Seen, Times


def times(p50: float = 0.0, p99: float = 0.0, *, count: int = 100) -> Times:
    """Times with these percentiles."""
    return Times(count=count, mean=p50, p50=p50, p90=p50, p99=p99, p999=p99, max=p99)


def seen(
    *,
    per_second: float = 1000.0,
    p50: float = 0.0,
    p99: float = 0.0,
    events: int = 0,
    lateness: float = 0.0,
    errors: Mapping[str, int] | None = None,
) -> Seen:
    """What a load saw; times in microseconds."""
    return Seen(
        begun=100,
        answered=100,
        large=0,
        per_second=per_second,
        events=events,
        cpu_seconds=0.1,
        latency=times(p50, p99),
        large_latency=times(),
        first_byte=times(),
        sent_late=times(),
        event_lateness=times(lateness, lateness),
        statuses={"200": 100},
        errors=dict(errors or {}),
    )


def measured(subject: str, workload: str, number: int, saw: Seen, *, cpu: float = 0.5) -> Measured:
    """One measurement, of a subject with 1 GiB of memory."""
    return Measured(subject, workload, number, saw, cpu_seconds=cpu, memory=1 << 30)


def decided(number: int, *, faster: float = 1.0) -> Decided:
    """What a scheduler decided in a round that is so much slower; as the goals allow, or so much faster."""
    return Decided(number, {100: 900e3 / number, 5_000: 350e3 * faster, 100_000: 900e3 / 8 / number * faster})


def results(each: Iterable[Measured], **fields: Any) -> Results:
    """A run of these measurements."""
    every = list(each)
    subjects = {one.subject: f"about {one.subject}" for one in every}
    return Results("a machine", "2026-01-01T00:00:00+00:00", subjects, measured=every, **fields)
