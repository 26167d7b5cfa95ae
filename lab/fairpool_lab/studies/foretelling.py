"""The ways to foretell what requests cost that the study of calibration sets side by side.

Those of the gateway are the gateway's own. The others differ from them in one thing each, so that it can be seen what
that is worth; of prompts they know the length, which every way here is right about.
"""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any, Final, NamedTuple

from fairpool_gateway.cost import CostModel, Estimator, Shape, Used
from fairpool_gateway.cost.estimate import FIRST_OUTPUT
from fairpool_lab.policies import POLICIES, PolicyFactory
from fairpool_lab.simulation import ESTIMATORS
from fairpool_lab.simulation.request import BYTES_PER_TOKEN


class Answers(Estimator):
    """An estimator that is another one only in what it takes answers' lengths to be."""

    def estimate(self, tenant: str, shape: Shape) -> int:
        """The cost, of a prompt that is known and an answer that is not; at least 1."""
        known = shape.text_bytes // BYTES_PER_TOKEN
        return max(1, self.cost_of(Used(known, round(self.answer(tenant, shape)))))

    @abstractmethod
    def answer(self, tenant: str, shape: Shape) -> float:
        """How long the answer will be."""


class AverageAt(Answers):
    """Each tenant's average answer, as the gateway has it, in which the newest answer weighs something else.

    Args:
        model: what tokens weigh.
        rate: what it weighs once there are many.
    """

    def __init__(self, model: CostModel, rate: float) -> None:
        super().__init__(model)
        self._rate = rate
        self._answers = Counter[str]()
        self._averages: dict[str, float] = {}

    def answer(self, tenant: str, shape: Shape) -> float:  # noqa: ARG002 - whatever is asked for
        """The tenant's average; before its first answer the pool's."""
        return self._averages.get(tenant, self._averages.get("", FIRST_OUTPUT))

    def learn(self, tenant: str, shape: Shape, used: Used) -> None:  # noqa: ARG002 - whatever was asked for
        """Move the tenant's average, and the pool's, whose name is empty."""
        for name in (tenant, ""):
            self._answers[name] += 1
            average = self._averages.get(name, 0.0)
            self._averages[name] = average + (used.output - average) * max(self._rate, 1 / self._answers[name])


class RatioOfAll(Answers):
    """`max_tokens` times the part of it that was used so far, over all requests: nothing ever fades.

    Args:
        model: what tokens weigh.
        together: whether the ratio is one for the whole pool, rather than one for each tenant.
    """

    def __init__(self, model: CostModel, *, together: bool) -> None:
        super().__init__(model)
        self._together = together
        self._used = Counter[str]()
        self._allowed = Counter[str]()

    def answer(self, tenant: str, shape: Shape) -> float:
        """The ratio of the tenant, or before its first answer of the pool, times what the request allows."""
        assert shape.max_tokens is not None, "every simulated request sets max_tokens"
        name = tenant if not self._together and self._allowed[tenant] else ""
        return shape.max_tokens * self._used[name] / self._allowed[name] if self._allowed[name] else FIRST_OUTPUT

    def learn(self, tenant: str, shape: Shape, used: Used) -> None:
        """Add to both sums, the tenant's and the pool's, whose name is empty."""
        assert shape.max_tokens is not None, "every simulated request sets max_tokens"
        for name in (tenant, ""):
            self._used[name] += used.output
            self._allowed[name] += shape.max_tokens


class Way(NamedTuple):
    """One way: what estimates, the order that takes its word for it, and whether the pool carries."""

    name: str
    estimator: Callable[[CostModel], Estimator]
    order: PolicyFactory[Any] = POLICIES["sfq"].factory
    carry: bool = False


DEFAULT: Final = "TenantAverage"
"""The gateway's default."""

ORACLE: Final = "oracle"

WAYS: Final = (
    Way(DEFAULT, ESTIMATORS["TenantAverage"].make),
    Way("TenantAverage, rate 0.1", partial(AverageAt, rate=0.1)),
    Way("TenantAverage, rate 0.5", partial(AverageAt, rate=0.5)),
    Way("MaxTokensRatio, pool-wide", partial(RatioOfAll, together=True)),
    Way("MaxTokensRatio, per tenant", partial(RatioOfAll, together=False)),
    Way("MaxTokensRatio", ESTIMATORS["MaxTokensRatio"].make),
    Way("TenantAverage, carry", ESTIMATORS["TenantAverage"].make, carry=True),
    Way("MaxTokensRatio, carry", ESTIMATORS["MaxTokensRatio"].make, carry=True),
    Way("constant", ESTIMATORS["constant"].make),
    Way(ORACLE, ESTIMATORS["oracle"].make),
)
