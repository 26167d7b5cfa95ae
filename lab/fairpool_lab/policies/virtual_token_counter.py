"""VTC: a counter per tenant of the tokens that engines served it; the least counter goes next.

Source: Sheng, Cao, Li, Zhu, Li, Zhuo, Gonzalez, Stoica, "Fairness in Serving Large Language Models", OSDI 2024.

- Algorithm 2: at its dispatch a request counts its input tokens, and each output token when it is generated. Who
  becomes backlogged is lifted, as `counters` says.
- Without the lift it is the paper's baseline LCF, least counter first: who was idle comes back with a low counter, and
  holds up everybody else until it has caught up.
- Weighted: what is counted is divided by the tenant's weight.
- With length prediction: at dispatch the predicted output counts too; what exceeds it counts when it is generated, and
  what falls short of it is taken back at the end. The predictor is that of the paper's artifact, a moving average of
  the tenant's answers, or an oracle.

Chosen here: input tokens count in full, cached or not. A weight is that at dispatch, until the request ends. A
prediction is rounded down, and is 0 before a tenant's first answer. A request that was cancelled counts what was
generated, and teaches it. The artifact lifts only where somebody else waits; here it is as in the paper.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Final, TypeVar, Unpack

from fairpool_gateway.sfq import Decision, charge
from fairpool_lab.policies.counters import LeastCounter, LiftedCounter
from fairpool_lab.policies.queues import Pool

RATE: Final = 1 / 5
"""How much of the average each answer makes up."""

R = TypeVar("R", bound=Hashable)


class _Served:
    """A request in flight: its tokens so far, those predicted, and how much was counted for them."""

    __slots__ = ("counted", "input", "output", "predicted", "tenant", "weight")

    def __init__(self, tenant: str, weight: int, input_tokens: int, predicted: int) -> None:
        self.tenant = tenant
        self.weight = weight
        self.input = input_tokens
        self.output = 0
        self.predicted = predicted
        self.counted = 0


class LeastCounterFirst(LeastCounter[R]):
    """Tokens served, in units of 1/Q token per weight, without lift and without prediction."""

    def __init__(self, price: Callable[[R], int], **pool: Unpack[Pool[R]]) -> None:
        super().__init__(price, **pool)
        self._in_flight: dict[R, _Served] = {}

    def predict(self, tenant: str, request: R) -> int:  # noqa: ARG002 - a hook
        """The output tokens to count at dispatch."""
        return 0

    def learn(self, tenant: str, output_tokens: int) -> None:
        """An answer had this length."""

    def took(self, decision: Decision[R]) -> None:
        """Count the input, and the output as far as it is predicted."""
        tenant, request = decision.tenant, decision.request
        predicted = self.predict(tenant, request)
        served = _Served(tenant, decision.weight, self.sight.input_tokens(request), predicted)
        self._in_flight[request] = served
        self._settle(served, predicted)

    def progressed(self, request: R, input_tokens: int, output_tokens: int) -> None:  # noqa: ARG002 - counted already
        """Count the output that was not predicted."""
        served = self._in_flight[request]
        served.output += output_tokens
        self._settle(served, max(served.output, served.predicted))

    def finished(self, request: R) -> None:
        """Take back what was predicted and did not come."""
        served = self._in_flight.pop(request)
        self._settle(served, served.output)
        self.learn(served.tenant, served.output)

    def _settle(self, served: _Served, output_tokens: int) -> None:
        """Let so many output tokens of the request be counted, besides its input."""
        cost = self.sight.cost(served.input, output_tokens)
        due = charge(cost, served.weight) if cost else 0
        self.count(served.tenant, due - served.counted)
        served.counted = due


class VirtualTokenCounter(LeastCounterFirst[R], LiftedCounter[R]):
    """With the lift."""


class VirtualTokenCounterPredicting(VirtualTokenCounter[R]):
    """With the moving average of each tenant's answers as the prediction."""

    def __init__(self, price: Callable[[R], int], **pool: Unpack[Pool[R]]) -> None:
        super().__init__(price, **pool)
        self._averages: dict[str, float] = {}

    def predict(self, tenant: str, request: R) -> int:  # noqa: ARG002 - tenants are predicted, not requests
        """The average, rounded down."""
        return int(self._averages.get(tenant, 0))

    def learn(self, tenant: str, output_tokens: int) -> None:
        """Move the average; the first answer is where it starts."""
        average = self._averages.get(tenant, output_tokens)
        self._averages[tenant] = average + RATE * (output_tokens - average)


class VirtualTokenCounterOracle(VirtualTokenCounter[R]):
    """With the true length as the prediction."""

    def predict(self, tenant: str, request: R) -> int:  # noqa: ARG002 - the request tells
        """What will be generated."""
        return self.sight.output_tokens(request)
