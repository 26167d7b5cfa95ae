"""What a simulated pool believes a request will cost: the gateway's own estimators, and two to set beside them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final, NamedTuple

from fairpool_gateway.cost import CostModel, Estimator, OutputEstimator, Shape, Used
from fairpool_lab.simulation.request import TrueShape


class Oracle(Estimator):
    """Knows what each request will use. No gateway can; it shows what estimates cost."""

    def estimate(self, tenant: str, shape: Shape) -> int:  # noqa: ARG002 - it knows, whoever asks
        """The true cost; at least 1."""
        assert isinstance(shape, TrueShape), "an oracle knows simulated requests only"
        return max(1, self.cost_of(shape.truth))

    def learn(self, tenant: str, shape: Shape, used: Used) -> None:
        """There is nothing to learn."""


class Constant(Estimator):
    """Takes every answer to be as long as the gateway's estimators do before they have learned anything."""

    def learn(self, tenant: str, shape: Shape, used: Used) -> None:
        """Learn nothing."""


class Estimating(NamedTuple):
    """One way to estimate: how to make it, and where it comes from."""

    make: Callable[[CostModel], Estimator]
    source: str


def _gateways(how: OutputEstimator) -> Callable[[CostModel], Estimator]:
    return lambda model: Estimator(replace(model, output_estimator=how))


ESTIMATORS: Final[Mapping[str, Estimating]] = {
    "TenantAverage": Estimating(
        _gateways(OutputEstimator.TENANT_AVERAGE), "the gateway's default: each tenant's average answer"
    ),
    "MaxTokensRatio": Estimating(
        _gateways(OutputEstimator.MAX_TOKENS_RATIO),
        "the gateway's: max_tokens times what was used of it (article §7.4)",
    ),
    "oracle": Estimating(Oracle, "the true cost, known in advance (what the VTC paper calls an oracle)"),
    "constant": Estimating(Constant, "256 output tokens for every request"),
}
