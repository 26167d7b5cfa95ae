"""Metrics, read from plain integers at the moment of a scrape, so that counting costs the hot path nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from fairpool_gateway.dispatcher import Dispatcher


class _PoolCollector(Collector):
    """Turns the dispatcher's counts into metric families."""

    def __init__(
        self, dispatcher: Dispatcher, refusals: Mapping[str, int], config_is_current: Callable[[], bool]
    ) -> None:
        self._dispatcher = dispatcher
        self._refusals = refusals
        self._config_is_current = config_is_current

    def collect(self) -> Iterator[Metric]:
        """All families of one scrape."""
        counts = self._dispatcher.counts
        for name, help_text, value in (
            ("requests_arrived", "Requests that asked for a slot.", counts.arrived),
            ("requests_dispatched", "Requests that were given a slot and charged.", counts.dispatched),
            ("requests_completed", "Slots that were given back.", counts.completed),
            ("requests_removed", "Requests that left their queue undispatched.", counts.removed),
            ("charged_tokens", "Cost of dispatched requests, as estimated at dispatch.", counts.charged),
            ("used_tokens", "Cost of completed requests, by what they really used.", counts.used),
            ("wait_seconds", "Seconds that dispatched requests waited.", counts.waited),
        ):
            yield CounterMetricFamily(f"fairpool_{name}", help_text, value)
        refused = CounterMetricFamily("fairpool_requests_refused", "Refusals by reason.", labels=["reason"])
        for reason, number in sorted(self._refusals.items()):
            refused.add_metric([reason], number)
        yield refused
        ordering = self._dispatcher.ordering
        yield GaugeMetricFamily("fairpool_requests_waiting", "Requests that wait for a slot.", ordering.waiting)
        yield GaugeMetricFamily(
            "fairpool_config_current", "1, or 0 while the latest edit cannot be used.", self._config_is_current()
        )
        yield from self._endpoints()

    def _endpoints(self) -> Iterator[Metric]:
        slots = GaugeMetricFamily("fairpool_endpoint_slots", "Slots of an endpoint.", labels=["endpoint"])
        in_flight = GaugeMetricFamily("fairpool_endpoint_in_flight", "Slots taken.", labels=["endpoint"])
        outstanding = GaugeMetricFamily(
            "fairpool_endpoint_outstanding_tokens", "Cost of what is in flight.", labels=["endpoint"]
        )
        for endpoint in self._dispatcher.endpoints:
            label = [endpoint.spec.id]
            slots.add_metric(label, endpoint.spec.slots)
            in_flight.add_metric(label, endpoint.in_flight)
            outstanding.add_metric(label, endpoint.outstanding)
        yield from (slots, in_flight, outstanding)


def exposition(
    dispatcher: Dispatcher, refusals: Mapping[str, int], config_is_current: Callable[[], bool]
) -> Callable[[], bytes]:
    """A function that renders one scrape in Prometheus' text format."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_PoolCollector(dispatcher, refusals, config_is_current))
    return lambda: generate_latest(registry)
