"""Max Diff and Avg Diff, the figures by which the VTC paper compares schedulers, so that ours stand beside its own.

Sheng et al., "Fairness in Serving Large Language Models" (OSDI 2024), §5, as the paper's artifact computes them
(Ying1123/VTC-artifact, commit 192c2e2: `get_service_diff_over_time` in `fair_bench/plot/visualize.py`, its arguments
in `plot_revision.py`): at 19 moments, 28.5 s apart behind a warm-up of 30 s, look at the window of 60 s around each.
There tenant j asked for `a_j` per second, the cost (input tokens + 2 x output tokens) of the requests that arrived in
the window over its length, and got `s_j` per second, where a request's cost comes evenly from its first output token
to its last. The difference of the moment is the sum over tenants of `min(max_i s_i - s_j, |a_j - s_j|)`: being behind
the one who got most counts only as far as there was something to be had. Max Diff is the greatest of the moments,
Avg Diff their mean.

`accumulated` is the paper's other figure, the absolute difference in accumulated service: of all that tenants got up
to a moment, the most minus the least.

Where this differs from the artifact: the windows follow the length of the run, which there is always 600 s, and a
request whose first token is its last counts whole at that moment, while the artifact leaves it out. Tenants have no
weights there; where ours differ, `per_weight` compares service over weight, as the paper's weighted VTC counts it.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from fairpool_lab.measures.served import Served

WINDOW: Final = 60.0
"""The paper's, in seconds."""

Cost = Callable[[Served], float]
"""What a request counts for."""


@dataclass(frozen=True, slots=True)
class ServiceDifference:
    """The differences at all moments, in cost per second; there is at least one."""

    moments: tuple[float, ...]
    differences: tuple[float, ...]

    @property
    def greatest(self) -> float:
        """Max Diff."""
        return max(self.differences)

    @property
    def mean(self) -> float:
        """Avg Diff."""
        return sum(self.differences) / len(self.differences)


def vtc_cost(request: Served) -> float:
    """The paper's cost: an output token costs as much as two input tokens."""
    return request.input_tokens + 2 * request.output_tokens


def per_weight(weights: Mapping[str, int]) -> Cost:
    """The paper's cost over the tenant's weight, the average weight being one: with equal weights, the paper's cost."""
    average = sum(weights.values()) / len(weights)
    return lambda request: vtc_cost(request) * average / weights[request.tenant]


def moments(until: float, *, warm_up: float = 30.0, parts: int = 20) -> tuple[float, ...]:
    """The paper's moments in a run of that length: the ends of all but the last of so many parts after the warm-up."""
    return tuple(warm_up + (until - warm_up) / parts * part for part in range(1, parts))


def of_run(
    served: Sequence[Served], weights: Mapping[str, int], *, began: float, until: float
) -> ServiceDifference | None:
    """The paper's figures of a run, from its first arrival to its last; None if it is shorter than their window.

    Args:
        served: the requests that were answered, at least one of them if the run counts.
        weights: those of all tenants.
        began: when the first request arrived.
        until: when the last one did.
    """
    if not served or until - began < WINDOW:
        return None
    at = [began + moment for moment in moments(until - began)]
    return windowed(served, at, cost=per_weight(weights))


def windowed(
    served: Sequence[Served], at: Sequence[float], *, window: float = WINDOW, cost: Cost = vtc_cost
) -> ServiceDifference:
    """Max Diff and Avg Diff; `at` holds the moments in order, at least one."""
    got = [defaultdict[str, float](float) for _ in at]
    asked = [defaultdict[str, float](float) for _ in at]
    for request in served:
        first = bisect_left(at, request.arrived - window / 2)
        for place in range(first, bisect_right(at, request.arrived + window / 2)):
            asked[place][request.tenant] += cost(request) / window
        first = bisect_left(at, request.begun - window / 2)
        for place in range(first, bisect_right(at, request.ended + window / 2)):
            part = _part(request, at[place] - window / 2, at[place] + window / 2)
            got[place][request.tenant] += cost(request) * part / window
    return ServiceDifference(tuple(at), tuple(_sum_behind(*both) for both in zip(got, asked, strict=True)))


def accumulated(served: Sequence[Served], at: Sequence[float], *, cost: Cost = vtc_cost) -> tuple[float, ...]:
    """At each moment, the most that any tenant of these requests had got by then minus the least."""
    tenants = {request.tenant for request in served}
    totals = [dict.fromkeys(tenants, 0.0) for _ in at]
    for request in served:
        for place in range(bisect_left(at, request.begun), len(at)):
            totals[place][request.tenant] += cost(request) * _part(request, request.begun, at[place])
    return tuple(max(total.values(), default=0.0) - min(total.values(), default=0.0) for total in totals)


def _part(request: Served, since: float, until: float) -> float:
    """The part of the request's service that came from `since` to `until`."""
    if request.begun == request.ended:
        return float(since <= request.begun <= until)
    within = min(until, request.ended) - max(since, request.begun)
    return max(0.0, within) / (request.ended - request.begun)


def _sum_behind(got: defaultdict[str, float], asked: defaultdict[str, float]) -> float:
    most = max(got.values(), default=0.0)
    return sum(min(most - got[tenant], abs(asked[tenant] - got[tenant])) for tenant in got.keys() | asked.keys())
