"""What a simulated run is given: demand, engines, weights, and what changes on the way. It says all but the policy."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Final

from fairpool_gateway.config import (
    AuthenticationSettings,
    CostSettings,
    PoolConfig,
    ProxyCredentialSettings,
    QueueSettings,
    SlotSettings,
    TenantQueueSettings,
    TenantSettings,
)
from fairpool_gateway.cost import CostModel, Estimator
from fairpool_gateway.endpoints import EndpointSpec
from fairpool_gateway.sfq import LEAST_WEIGHT, MOST_WEIGHT
from fairpool_lab.errors import SettingsInvalid
from fairpool_lab.simulation.demand import Ask, Clients
from fairpool_lab.simulation.engines import Engine

MODEL: Final = "simulated"
"""The one model of a simulated pool."""

POOL: Final = "simulated"

PATIENT: Final = QueueSettings.model_validate({
    "timeout": "24h",
    "maxRequests": 1_000_000,
    "maxBytes": "1Ti",
    "perTenant": TenantQueueSettings.model_validate({"maxRequests": 1_000_000, "maxBytes": "1Ti"}),
})  # fmt: skip
"""A queue in which everybody may wait, so that the order alone decides; the gateway's own bounds are narrower."""

_MOST_TENANTS = 1_000_000


@dataclass(frozen=True, slots=True)
class Reweigh:
    """At this time a tenant gets a weight, or with None the default one."""

    at: float
    tenant: str
    weight: int | None


@dataclass(frozen=True, slots=True)
class Replace:
    """From this time on these are the endpoints; one that leaves finishes what it runs."""

    at: float
    endpoints: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Scenario:
    """One run, for any policy.

    Attributes:
        engine: makes the inside of an endpoint.
        asks: the open loop's requests, in order of arrival.
        clients: the closed loops.
        endpoints: the names of the endpoints at first.
        slots: how many requests each may have outstanding.
        weights: the tenants that have a weight of their own, 1 to 1000.
        default_weight: everybody else's.
        changes: what changes on the way, in any order.
        cost: what a token weighs.
        estimator: makes what estimates costs.
        queue: what may wait, and how long.
        max_tenants: how many tenants without a weight of their own are told apart, where an order tells them apart.
        pool: a pool's own configuration, whose tenants may be suspended and have bounds of their own; None for one that
            says nothing but what is said here.
        seed: what closed loops draw their requests by.
    """

    engine: Callable[[], Engine]
    asks: Sequence[Ask] = ()
    clients: tuple[Clients, ...] = ()
    endpoints: tuple[str, ...] = ("engine-0",)
    slots: int = 64
    weights: Mapping[str, int] = field(default_factory=dict)
    default_weight: int = 100
    changes: tuple[Reweigh | Replace, ...] = ()
    cost: CostModel = field(default_factory=CostModel)
    estimator: Callable[[CostModel], Estimator] = Estimator
    queue: QueueSettings = PATIENT
    max_tenants: int = _MOST_TENANTS
    pool: PoolConfig | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        if self.slots < 1:
            raise SettingsInvalid(f"an endpoint has at least one slot, not {self.slots}")
        changed = (
            change.weight for change in self.changes if isinstance(change, Reweigh) and change.weight is not None
        )
        for weight in (self.default_weight, *self.weights.values(), *changed):
            if not LEAST_WEIGHT <= weight <= MOST_WEIGHT:
                raise SettingsInvalid(f"a weight is {LEAST_WEIGHT} to {MOST_WEIGHT}, not {weight}")

    def config(self, weights: Mapping[str, int]) -> PoolConfig:
        """The pool as its gateway would be configured, behind a proxy that names the tenants.

        These may be called whatever a trace calls them, so their names are not held to the configuration's rules.
        """
        own = {} if self.pool is None else {tenant.name: tenant for tenant in self.pool.tenants}
        tenants = (own.get(name, TenantSettings.model_construct(name=name)) for name in sorted(weights))
        return PoolConfig(
            pool=POOL,
            models=(MODEL,),
            endpoints=(),
            tenants=tuple(tenant.model_copy(update={"weight": weights[tenant.name], "keys": ()}) for tenant in tenants),
            authentication=AuthenticationSettings(
                type="TrustedHeader",
                header="x-tenant",
                proxy_credential=ProxyCredentialSettings(digest="sha256:" + sha256(b"simulated").hexdigest()),
                unknown_tenants="Admit",
                max_tenants=self.max_tenants,
            ),
            cost=CostSettings(
                input_weight=self.cost.input_weight,
                output_weight=self.cost.output_weight,
                output_estimator=self.cost.output_estimator.value,
                context_length=self.cost.context_length,
                carry=self.cost.carry,
            ),
            slots=SlotSettings(per_endpoint=self.slots),
            queue=self.queue,
            default_weight=self.default_weight,
            suspend=self.pool is not None and self.pool.suspend,
        )

    def specs(self, endpoints: Sequence[str]) -> Iterator[EndpointSpec]:
        """These endpoints, as the dispatcher knows them."""
        return (EndpointSpec(name, "simulated", 1, self.slots) for name in endpoints)
