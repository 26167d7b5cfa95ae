"""Equinox: what a tenant was served counts for less where it came late, and where the pool stood idle.

Source: Wei et al., "Equinox: Holistic Fair Scheduling in Serving Large Language Models", arXiv 2508.16646 (2025), as
far as its abstract tells. A User Fairness Counter measures quality of service, by weighted tokens and latency; a
Resource Fairness Counter measures efficiency, by throughput and GPU utilisation; a score that weighs the two is the
order, the least goes next; and since all four are known only afterwards, they are predicted at dispatch.

The formulas are chosen here and may differ from the paper's. With T the request's cost over its tenant's weight, W its
wait, L its latency from dispatch to end, and U how much of the pool is in use:

- UFC grows by `T * L / (W + L)`: service that came late counts for less, by the slowdown that waiting made of it;
- RFC grows by `T * U`, which is throughput (T/L) times utilisation, over the time L that it lasted;
- the score is `0.7 * UFC + 0.3 * RFC`, and it is lifted as VTC's counter is, or idleness could be saved up.

Predicted are T by the pool's own estimate of the cost, L by the mean time per token so far in the whole pool (before
the first answer waits count for nothing), U by requests in flight over the most there ever were. When a request ends
its tokens and its latency are corrected to what they were. The paper's mixture of predictors is not modelled, nor are
its adaptive batching and stall-free scheduling, which are inside the engine.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Final, TypeVar, Unpack

from fairpool_gateway.sfq import Decision, charge
from fairpool_lab.policies.counters import LiftedCounter
from fairpool_lab.policies.queues import Pool

USER: Final = 7
"""Tenths of the score that the User Fairness Counter makes up; the other makes up the rest."""

_TICKS: Final = 1_000_000
"""Ticks in a second: times are counted in whole ones."""

R = TypeVar("R", bound=Hashable)


@dataclass(slots=True)
class _Served:
    """A request in flight; times in ticks, `busy` and `most` the requests in flight then, and ever by then."""

    tenant: str
    weight: int
    waited: int
    dispatched: int
    busy: int
    most: int
    tokens: int = 0
    counted: int = 0


class Equinox(LiftedCounter[R]):
    """Scores, in units of 1/Q token per weight."""

    def __init__(self, price: Callable[[R], int], **pool: Unpack[Pool[R]]) -> None:
        super().__init__(price, **pool)
        self._now = 0
        self._arrived: dict[R, int] = {}
        self._in_flight: dict[R, _Served] = {}
        self._most = 0
        # What all requests that ended took, which predicts the latency of those to come.
        self._ticks = self._tokens = 0

    def advance(self, now: float) -> None:
        """Keep the time."""
        self._now = round(now * _TICKS)

    def arrive(self, tenant: str, request: R) -> str:
        """Note when it came."""
        self._arrived[request] = self._now
        return super().arrive(tenant, request)

    def remove(self, tenant: str, request: R) -> None:
        """Nothing was served."""
        super().remove(tenant, request)
        del self._arrived[request]

    def took(self, decision: Decision[R]) -> None:
        """Count what is predicted."""
        waited = self._now - self._arrived.pop(decision.request)
        busy = len(self._in_flight) + 1
        self._most = max(self._most, busy)
        served = _Served(decision.tenant, decision.weight, waited, self._now, busy, self._most)
        self._in_flight[decision.request] = served
        latency = decision.cost * self._ticks // self._tokens if self._tokens else 0
        self._settle(served, decision.cost, latency)

    def progressed(self, request: R, input_tokens: int, output_tokens: int) -> None:
        """Keep count of the tokens."""
        self._in_flight[request].tokens += self.sight.cost(input_tokens, output_tokens)

    def finished(self, request: R) -> None:
        """Count what it was in the end."""
        served = self._in_flight.pop(request)
        latency = self._now - served.dispatched
        self._ticks += latency
        self._tokens += served.tokens
        self._settle(served, served.tokens, latency)

    def _settle(self, served: _Served, tokens: int, latency: int) -> None:
        """Let so many tokens be counted for the request, in so much time."""
        due = charge(tokens, served.weight) if tokens else 0
        user = due * latency // (served.waited + latency) if latency else due
        resource = due * served.busy // served.most
        score = (USER * user + (10 - USER) * resource) // 10
        self.count(served.tenant, score - served.counted)
        served.counted = score
