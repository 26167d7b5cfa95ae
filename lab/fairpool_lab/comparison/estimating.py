"""How well estimators foretell costs in a pool: each is run on the same trace, learning as it would in service.

What counts in the end is the share error, for charges are what the order goes by: an estimate that is wrong for
everybody alike harms nobody, and one that is wrong for a tenant takes from it, or from the others.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace

from fairpool_gateway.cost import CostModel
from fairpool_lab.comparison.setup import Setup
from fairpool_lab.measures import history, shares
from fairpool_lab.policies import POLICIES
from fairpool_lab.simulation import ESTIMATORS, End, Run, simulate

_ENOUGH = 20
"""Requests that a tenant must have, to be called the worst."""


@dataclass(frozen=True, slots=True)
class Foretold:
    """One estimator.

    Attributes:
        estimator: its name.
        bias: by how much all charges together exceed what was really used, as a part of it.
        error: the mean distance of a charge from what was used, as a part of the mean.
        worst_bias: the bias of the tenant that has the greatest, of those with 20 requests or more.
        share_error: the greatest difference of a tenant's share from what it was entitled to.
    """

    estimator: str
    bias: float
    error: float
    worst_bias: float
    share_error: float


def foretell(setup: Setup) -> tuple[Foretold, ...]:
    """What each estimator makes of the setup, in fair order."""
    return tuple(_foretold(replace(setup, estimator=name)) for name in ESTIMATORS)


def of_run(estimator: str, run: Run, cost: CostModel) -> Foretold:
    """How well the charges of a run foretold what its requests used."""
    charged, used, off, asked = Counter[str](), Counter[str](), Counter[str](), Counter[str]()
    for request in run.requests:
        if request.end is End.COMPLETED:
            true = cost.input_weight * request.input_tokens + cost.output_weight * request.output_tokens
            charged[request.tenant] += request.cost
            used[request.tenant] += true
            off[request.tenant] += abs(request.cost - true)
            asked[request.tenant] += 1
    biases = [charged[tenant] / used[tenant] - 1 for tenant, times in asked.items() if times >= _ENOUGH]
    use = history.really_used(cost.input_weight, cost.output_weight)
    return Foretold(
        estimator=estimator,
        bias=charged.total() / used.total() - 1 if used else 0.0,
        error=off.total() / used.total() if used else 0.0,
        worst_bias=max(biases, key=abs, default=0.0),
        share_error=shares.shares(run.log, measure=use).greatest_difference,
    )


def _foretold(setup: Setup) -> Foretold:
    return of_run(setup.estimator, simulate(setup.scenario(), POLICIES["sfq"].factory), setup.cost)
