"""What a comparison is made of, checked before anything runs: a trace, a pool to serve it, and its policies."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from random import Random

from fairpool_gateway.config import PoolConfig
from fairpool_gateway.cost import CostModel, Used
from fairpool_gateway.sfq import LEAST_WEIGHT, MOST_WEIGHT
from fairpool_lab import traces
from fairpool_lab.comparison.engines import Chosen
from fairpool_lab.errors import OptionInvalid
from fairpool_lab.measures.served import Served
from fairpool_lab.policies import POLICIES, Listed, named
from fairpool_lab.simulation import ESTIMATORS, PATIENT, Scenario, of_trace
from fairpool_lab.traces import Trace

RANKED = "ranked"
"""In place of weights: those of `traces.WEIGHT_RULE`."""


@dataclass(frozen=True, slots=True)
class Setup:
    """One demand and one pool.

    Attributes:
        trace: what is asked for.
        engine: what the endpoints are.
        endpoints: how many there are.
        slots: how many requests each may have outstanding.
        weights: the tenants that do not have the default weight.
        estimator: the name of what estimates costs.
        seed: what is drawn by chance follows from it.
        speed: how many seconds of the trace pass in one.
        leaves_after: how long clients wait; None for as long as it takes.
        block_tokens: the tokens of a block of the engines' prefix caches; None for no caches.
        cost: what a token weighs.
        pool: a pool's own configuration; None where everybody may wait, as long as it takes.
    """

    trace: Trace
    engine: Chosen
    endpoints: int
    slots: int
    weights: Mapping[str, int]
    estimator: str
    seed: int = 0
    speed: float = 1.0
    leaves_after: float | None = None
    block_tokens: int | None = None
    cost: CostModel = field(default_factory=CostModel)
    pool: PoolConfig | None = None

    def __post_init__(self) -> None:
        for option, value in (
            ("--endpoints", self.endpoints),
            ("--slots", self.slots),
            ("--speed", self.speed),
            ("--leave-after", self.leaves_after),
            ("--prefix-cache", self.block_tokens),
        ):
            if value is not None and not 0 < value < float("inf"):
                raise OptionInvalid(f"{option}: must be positive, not {value:g}")
        if self.estimator not in ESTIMATORS:
            raise OptionInvalid(f"--estimator: {self.estimator!r} is none of {', '.join(ESTIMATORS)}")
        if not self.trace:
            raise OptionInvalid(f"--drop-longer: no request is left that {self.engine.name} can hold")
        too_long = [request for request in self.trace if not self.fits(self.engine, request)]
        if too_long:
            raise OptionInvalid(
                f"--engine: {len(too_long):,} of {len(self.trace):,} requests have more than the "
                f"{self.engine.longest:,} tokens that {self.engine.name} can hold: choose another, or --drop-longer"
            )

    @staticmethod
    def fits(engine: Chosen, request: traces.TraceRequest) -> bool:
        """Whether an engine can hold a request."""
        return engine.longest is None or max(1, request.input_tokens) + request.output_tokens <= engine.longest

    def alone(self, request: Served) -> float:
        """The seconds that such a request takes in an engine that does nothing else."""
        return self.engine.alone(self.cost, Used(request.input_tokens, request.output_tokens))

    def scenario(self) -> Scenario:
        """The same for every policy."""
        chance = Random(self.seed)  # noqa: S311 - to be repeatable
        return Scenario(
            lambda: self.engine.make(self.cost, self.block_tokens),
            tuple(of_trace(self.trace, chance, speed=self.speed, leaves_after=self.leaves_after)),
            endpoints=tuple(f"engine-{number}" for number in range(self.endpoints)),
            slots=self.slots,
            weights=self.weights,
            estimator=ESTIMATORS[self.estimator].make,
            cost=self.cost,
            default_weight=100 if self.pool is None else self.pool.default_weight,
            queue=PATIENT if self.pool is None else self.pool.queue,
            pool=self.pool,
            seed=self.seed,
        )


def of_pool(
    pool: PoolConfig,
    trace: Trace,
    engine: Chosen,
    *,
    endpoints: int,
    seed: int = 0,
    speed: float = 1.0,
    leaves_after: float | None = None,
    block_tokens: int | None = None,
) -> Setup:
    """A pool as it is configured, with its own weights, slots, bounds and estimates, for the requests of a trace.

    Raises:
        OptionInvalid: it knows none of their tenants, or an option cannot be used.
    """
    if not trace:
        known = ", ".join(tenant.name for tenant in pool.tenants) or "nobody"
        raise OptionInvalid(f"--trace: no request is of a tenant that pool {pool.pool} knows, which are {known}")
    return Setup(
        trace=trace,
        engine=engine,
        endpoints=endpoints,
        slots=pool.slots.per_endpoint,
        weights=pool.weights(),
        estimator=pool.cost.output_estimator.value,
        seed=seed,
        speed=speed,
        leaves_after=leaves_after,
        block_tokens=block_tokens,
        cost=pool.cost.model(),
        pool=pool,
    )


def policies(names: list[str]) -> tuple[Listed, ...]:
    """The policies of these names, each once.

    Raises:
        OptionInvalid: there is none of that name.
    """
    return tuple(_policy(name) for name in dict.fromkeys(names))


def weights(option: str | None, trace: Trace) -> dict[str, int]:
    """The weights that an option gives the tenants of a trace: `TENANT=WEIGHT,…`, or `ranked`; None for no option.

    Raises:
        OptionInvalid: it gives something else.
    """
    if option is None:
        return {}
    if option == RANKED:
        return traces.weights(trace)
    tenants = {request.tenant for request in trace}
    given: dict[str, int] = {}
    for part in option.split(","):
        tenant, equals, weight = (word.strip() for word in part.rpartition("="))
        if not equals or not weight.isdecimal() or not LEAST_WEIGHT <= int(weight) <= MOST_WEIGHT:
            raise OptionInvalid(f"--weights: {part!r} is not TENANT=WEIGHT, with a weight of 1 to 1000")
        if tenant not in tenants:
            raise OptionInvalid(f"--weights: the trace has no tenant {tenant!r}")
        given[tenant] = int(weight)
    return given


def _policy(name: str) -> Listed:
    listed = named(name)
    if listed is None:
        known = ", ".join(each.usage for each in POLICIES.values())
        raise OptionInvalid(f"--policy: {name!r} is none of {known}")
    return listed
