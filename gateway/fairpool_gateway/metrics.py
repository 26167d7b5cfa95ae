"""Metrics, read from plain integers at the moment of a scrape, so that counting costs the hot path next to nothing.

What always holds: the number of series is bounded, whatever comes. A label is a tenant that has a tally of its own or
the one that the others share, an endpoint of the pool, or one of a few words; never a name that a request brought
with it, and never a model. `docs/operations.md` lists every metric.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from fairpool_gateway.dispatcher import Dispatcher, Request
from fairpool_gateway.health import Standing
from fairpool_gateway.sfq import Q
from fairpool_gateway.tallies import WAIT_BOUNDS, Tally

_LE = [*(f"{bound:g}" for bound in WAIT_BOUNDS), "+Inf"]


@dataclass(frozen=True, slots=True)
class Vitals:
    """What is to be shown of the process around the dispatcher, at one moment.

    `left_out` counts pods of which an endpoint is missing, by why; `followed` says of what is followed through the
    Kubernetes API whether it is at the moment.
    """

    config_is_current: bool
    buffered: int
    connections: int
    refused_connections: int
    tasks: int
    left_out: Mapping[str, int]
    followed: Mapping[str, bool]


class _PoolCollector(Collector):
    """Turns what the dispatcher has counted, and what it holds now, into metric families."""

    def __init__(self, dispatcher: Dispatcher, vitals: Callable[[], Vitals]) -> None:
        self._dispatcher = dispatcher
        self._vitals = vitals

    def collect(self) -> Iterator[Metric]:
        """All families of one scrape."""
        tallies = [tally for tally in self._dispatcher.tallies if tally.tenant]
        yield self._outcomes()
        yield from _sums(tallies)
        yield _estimate_errors(tallies)
        yield _waits(tallies)
        yield _gauge(
            "in_flight_requests",
            "Slots that a tenant has now.",
            "tenant",
            ((tally.tenant, tally.in_flight) for tally in tallies),
        )
        yield from self._debts()
        yield from self._order()
        yield from self._endpoints()
        yield from self._pool()

    def _outcomes(self) -> Metric:
        family = CounterMetricFamily(
            "fairpool_outcomes",
            "Requests that ended, by how: answered, answer_broken, tenant_gone, or the reason of a refusal. "
            "The tenant is empty where a request did not show whose it is.",
            labels=["tenant", "reason"],
        )
        for tally in self._dispatcher.tallies:
            for reason, number in sorted(tally.outcomes.items()):
                family.add_metric([tally.tenant, reason], number)
        return family

    def _debts(self) -> Iterator[Metric]:
        debts = self._dispatcher.charging.debts(self._dispatcher.tallies)
        if debts is not None:
            yield _gauge(
                "debt_tokens",
                "What a tenant's estimates were too low by and its next charges will make up for; below 0 too high. "
                "Only where the pool carries.",
                "tenant",
                debts.items(),
            )

    def _order(self) -> Iterator[Metric]:
        """Who waits, and how the meters stand to virtual time."""
        ordering, tallies = self._dispatcher.ordering, self._dispatcher.tallies
        waiting: dict[str, int] = {tally.tenant: 0 for tally in tallies if tally.tenant}
        leads = dict(waiting)
        heads: dict[str, int] = {}
        for meter in ordering.meters():
            tenant = tallies.of(meter.tenant).tenant
            waiting[tenant] += meter.waiting
            leads[tenant] = max(leads[tenant], meter.meter - ordering.v)
            if meter.waiting:
                heads[tenant] = min(heads.get(tenant, meter.meter), meter.meter)
        yield _gauge("waiting_requests", "Requests that wait for a slot.", "tenant", waiting.items())
        yield _gauge(
            "weight", "Weight of a tenant's next charge.", "tenant", ((name, ordering.weight(name)) for name in waiting)
        )
        yield _gauge(
            "lead_tokens",
            "How far a tenant's meter is ahead of virtual time, in tokens per weight; the greatest of those who share "
            "a label.",
            "tenant",
            ((name, lead / Q) for name, lead in leads.items()),
        )
        yield _gauge(
            "head_tag_tokens",
            "Start tag of the oldest waiting request of a backlogged tenant, in tokens per weight; the least of those "
            "who share a label.",
            "tenant",
            ((name, head / Q) for name, head in heads.items()),
        )
        yield GaugeMetricFamily(
            "fairpool_virtual_time_tokens", "Virtual time, in tokens per weight; it never decreases.", ordering.v / Q
        )

    def _endpoints(self) -> Iterator[Metric]:
        endpoints = list(self._dispatcher.endpoints)
        for name, help_text, values in (
            ("slots", "Slots of an endpoint.", [each.spec.slots for each in endpoints]),
            ("in_flight_requests", "Slots of an endpoint that are taken.", [each.in_flight for each in endpoints]),
            ("outstanding_tokens", "Cost of what is in flight on an endpoint.", [e.outstanding for e in endpoints]),
            ("draining", "1 while an endpoint gets nothing new.", [int(each.spec.draining) for each in endpoints]),
            (
                "serves_models",
                "1, or 0 while an endpoint gets nothing because it may not serve the models of the pool.",
                [int(each.wanting is None) for each in endpoints],
            ),
        ):
            ids = (each.spec.id for each in endpoints)
            yield _gauge(f"endpoint_{name}", help_text, "endpoint", zip(ids, values, strict=True))
        standings = GaugeMetricFamily(
            "fairpool_endpoint_standing",
            "1 for how an endpoint stands now: good, ejected, or on_trial with one request after an ejection.",
            labels=["endpoint", "standing"],
        )
        ejections = CounterMetricFamily(
            "fairpool_endpoint_ejections", "Times that an endpoint was taken out of the pool.", labels=["endpoint"]
        )
        for endpoint in endpoints:
            ejections.add_metric([endpoint.spec.id], endpoint.health.ejected)
            for standing in Standing:
                is_so = endpoint.health.standing is standing
                standings.add_metric([endpoint.spec.id, standing.name.lower()], is_so)
        yield from (standings, ejections)

    def _pool(self) -> Iterator[Metric]:
        dispatcher, vitals = self._dispatcher, self._vitals()
        for name, help_text, value in (
            ("retrying_requests", "Requests that wait to be tried on another endpoint.", dispatcher.retrying),
            ("held_bytes", "Bytes of what waits, and of bodies on their way in.", dispatcher.admission.bytes),
            ("buffered_bytes", "Bytes of answers that tenants have yet to take.", vitals.buffered),
            ("connections", "Connections of tenants, TLS handshakes included.", vitals.connections),
            ("tasks", "Tasks of the event loop: one for each request, and a few.", vitals.tasks),
            ("config_current", "1, or 0 while the latest edit cannot be used.", int(vitals.config_is_current)),
        ):
            yield GaugeMetricFamily(f"fairpool_{name}", help_text, value)
        yield CounterMetricFamily(
            "fairpool_refused_connections",
            "Connections that were closed at once, because there were as many as may be.",
            vitals.refused_connections,
        )
        yield _gauge(
            "left_out_pods",
            "Pods of the selector of which an endpoint is missing, by why.",
            "reason",
            vitals.left_out.items(),
        )
        yield _gauge(
            "followed",
            "1, or 0 while this cannot be followed through the Kubernetes API and what was seen last stays in force.",
            "what",
            vitals.followed.items(),
        )


class _One(Collector):
    """A single family, to be rendered by itself."""

    def __init__(self, family: Metric) -> None:
        self._family = family

    def collect(self) -> list[Metric]:
        """The family."""
        return [self._family]


def exposition(dispatcher: Dispatcher, vitals: Callable[[], Vitals]) -> Callable[[], Iterator[bytes]]:
    """A function that renders one scrape in Prometheus' text format, in parts that take a few milliseconds each.

    For a pool of a hundred tenants all of it takes 15 ms, for which nothing else should have to wait.
    """
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_PoolCollector(dispatcher, vitals))
    ProcessCollector(registry=registry)
    return lambda: (generate_latest(_One(family)) for family in registry.collect())


def _sums(tallies: list[Tally[Request]]) -> Iterator[Metric]:
    counts = [tally.counts for tally in tallies]
    for name, help_text, values in (
        ("arrivals", "Requests that asked for a slot.", [each.arrived for each in counts]),
        ("dispatches", "Requests that were given a slot and charged.", [each.dispatched for each in counts]),
        ("retries", "Attempts that were repeated on another endpoint.", [each.retried for each in counts]),
        ("removals", "Requests that left their queue undispatched.", [each.removed for each in counts]),
        ("charged_tokens", "Cost of dispatched requests, as charged at dispatch.", [each.charged for each in counts]),
        ("used_tokens", "Cost of completed requests, by what they really used.", [each.used for each in counts]),
        ("input_tokens", "Input tokens of completed requests.", [each.input for each in counts]),
        ("output_tokens", "Output tokens of completed requests.", [each.output for each in counts]),
    ):
        family = CounterMetricFamily(f"fairpool_{name}", help_text, labels=["tenant"])
        for tally, value in zip(tallies, values, strict=True):
            family.add_metric([tally.tenant], value)
        yield family


def _estimate_errors(tallies: list[Tally[Request]]) -> Metric:
    family = CounterMetricFamily(
        "fairpool_estimate_error_tokens",
        "By how much completed requests were estimated over or under what they used; each adds to its direction.",
        labels=["tenant", "direction"],
    )
    for tally in tallies:
        family.add_metric([tally.tenant, "over"], tally.counts.overestimated)
        family.add_metric([tally.tenant, "under"], tally.counts.underestimated)
    return family


def _waits(tallies: list[Tally[Request]]) -> Metric:
    family = HistogramMetricFamily(
        "fairpool_wait_seconds", "How long dispatched requests had waited for their slot.", labels=["tenant"]
    )
    for tally in tallies:
        buckets, total = [], 0
        for bound, number in zip(_LE, tally.waits.buckets, strict=True):
            total += number
            buckets.append((bound, total))
        family.add_metric([tally.tenant], buckets, tally.waits.microseconds / 1e6)
    return family


def _gauge(name: str, help_text: str, label: str, values: Iterable[tuple[str, float]]) -> Metric:
    family = GaugeMetricFamily(f"fairpool_{name}", help_text, labels=[label])
    for of, value in values:
        family.add_metric([of], value)
    return family
