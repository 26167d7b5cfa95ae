"""What the engine shows of itself under `/metrics`: vLLM's names and labels, read from the runner when asked."""

from __future__ import annotations

from collections.abc import Iterable

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.registry import Collector

from fairpool_lab.engine.runner import Runner

CONTENT_TYPE = CONTENT_TYPE_LATEST
_REASONS = ("stop", "length", "abort", "error", "repetition")


class EngineMetrics(Collector):
    """The metrics of one engine."""

    def __init__(self, runner: Runner, model: str) -> None:
        self._runner = runner
        self._labels = {"engine": "0", "model_name": model}
        self._registry = CollectorRegistry()
        self._registry.register(self)

    def render(self) -> bytes:
        """The body of `/metrics`."""
        return generate_latest(self._registry)

    def collect(self) -> Iterable[Metric]:
        """Called by the registry."""
        runner = self._runner
        batcher = runner.batcher
        yield self._gauge(
            "vllm:num_requests_running", "Number of requests in model execution batches.", batcher.running_count
        )
        waiting = batcher.waiting_count
        yield self._gauge("vllm:num_requests_waiting", "Number of requests waiting to be processed.", waiting)
        yield self._by(
            GaugeMetricFamily(
                "vllm:num_requests_waiting_by_reason", "Number of waiting requests by reason.", labels=()
            ),
            "reason",
            {"capacity": waiting, "deferred": 0},
        )
        yield self._gauge(
            "vllm:kv_cache_usage_perc",
            "KV-cache usage. 1 means 100 percent usage.",
            batcher.kv_used / runner.limits.kv_tokens,
        )
        yield self._counter(
            "vllm:num_preemptions", "Cumulative number of preemption from the engine.", batcher.preemptions
        )
        yield self._counter("vllm:prompt_tokens", "Number of prefill tokens processed.", runner.prompt_tokens)
        yield self._counter(
            "vllm:generation_tokens", "Number of generation tokens processed.", runner.generation_tokens
        )
        yield self._by(
            CounterMetricFamily("vllm:request_success", "Count of successfully processed requests.", labels=()),
            "finished_reason",
            {reason: runner.finished[reason] for reason in _REASONS},
        )
        rejections = CounterMetricFamily(
            "vllm:admission_rejections",
            "Number of admission attempts rejected by a queue limit, by reason.",
            labels=("model_name", "reason"),
        )
        rejections.add_metric((self._labels["model_name"], "max_num_queued_reqs"), runner.rejected)
        yield rejections

    def _gauge(self, name: str, text: str, value: float) -> Metric:
        family = GaugeMetricFamily(name, text, labels=tuple(self._labels))
        family.add_metric(tuple(self._labels.values()), value)
        return family

    def _counter(self, name: str, text: str, value: float) -> Metric:
        family = CounterMetricFamily(name, text, labels=tuple(self._labels))
        family.add_metric(tuple(self._labels.values()), value)
        return family

    def _by(self, family: Metric, label: str, values: dict[str, float]) -> Metric:
        suffix = "_total" if isinstance(family, CounterMetricFamily) else ""
        for key, value in values.items():
            family.add_sample(family.name + suffix, self._labels | {label: key}, value)
        return family
