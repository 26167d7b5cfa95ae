"""What the operator counts, as plain numbers, and how they are shown to a scraper.

What always holds: no label is the name of a resource, so that the number of series does not grow with the cluster.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric, SummaryMetricFamily
from prometheus_client.registry import Collector


@dataclass(slots=True)
class Tally:
    """What has happened since the process began.

    Attributes:
        reconciles: ended looks at a pool, by how: done, failed, or not_leading.
        seconds: what they took in all.
        lists: fresh lists of everything, or of one namespace, that were compared with what watches had told.
        failed_lists: lists that came to nothing, for the API server was away or refused.
        corrections: pools that a fresh list showed in another state than the watches had.
    """

    reconciles: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0
    lists: int = 0
    failed_lists: int = 0
    corrections: int = 0


@dataclass(frozen=True, slots=True)
class Gauges:
    """What is so at the moment of a scrape."""

    leading: bool
    synced: bool
    waiting: int
    pools: int
    tenant_weights: int
    unready_pools: int
    unready_tenant_weights: int
    calls: int
    writes: int
    watch_restarts: int


class _OperatorCollector(Collector):
    def __init__(self, tally: Tally, gauges: Callable[[], Gauges]) -> None:
        self._tally = tally
        self._gauges = gauges

    def collect(self) -> Iterator[Metric]:
        """All families of one scrape."""
        tally, now = self._tally, self._gauges()
        ended = CounterMetricFamily(
            "fairpool_operator_reconciles", "Looks at a pool, by how they ended.", labels=["result"]
        )
        for result in ("done", "failed", "not_leading"):
            ended.add_metric([result], tally.reconciles[result])
        yield ended
        took = SummaryMetricFamily("fairpool_operator_reconcile_seconds", "What looks at a pool took.")
        took.add_metric([], tally.reconciles.total(), tally.seconds)
        yield took
        for name, help_, value in (
            ("lists", "Fresh lists of all there is, or of one namespace, compared with the watches.", tally.lists),
            ("failed_lists", "Lists that came to nothing: what was known before stays.", tally.failed_lists),
            ("corrections", "Pools that a fresh list showed in another state than the watches.", tally.corrections),
            ("api_calls", "Requests to the API server, but for watches.", now.calls),
            ("api_writes", "Those of them that write, but for the Lease.", now.writes),
            ("watch_restarts", "How often kopf ended and was started again.", now.watch_restarts),
        ):
            yield CounterMetricFamily(f"fairpool_operator_{name}", help_, value=value)
        for name, help_, number in (
            ("leading", "1 if this process writes.", now.leading),
            ("synced", "1 once everything has been listed.", now.synced),
            ("waiting_pools", "Pools that wait to be looked at.", now.waiting),
            ("pools", "FairPools.", now.pools),
            ("tenant_weights", "TenantWeights.", now.tenant_weights),
            ("unready_pools", "FairPools that are not Ready.", now.unready_pools),
            ("unready_tenant_weights", "TenantWeights that are not Ready.", now.unready_tenant_weights),
        ):
            yield GaugeMetricFamily(f"fairpool_operator_{name}", help_, value=number)


def exposition(tally: Tally, gauges: Callable[[], Gauges]) -> Callable[[], bytes]:
    """What to call for the text of one scrape."""
    registry = CollectorRegistry()
    registry.register(_OperatorCollector(tally, gauges))
    ProcessCollector(registry=registry)
    return lambda: generate_latest(registry)
