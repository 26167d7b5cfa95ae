"""What the operator and the gateways say about resources; only they write it, each its own fields."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, computed_field

from fairpool_operator.resources.part import Part


class Condition(Part):
    """One aspect of a resource's state, in Kubernetes' usual form.

    The time of the last transition stays text, for it is only ever passed on or replaced.
    """

    type: str
    status: Literal["True", "False", "Unknown"]
    observed_generation: int | None = None
    last_transition_time: str
    reason: str
    message: str


class EndpointCounts(Part):
    """How many endpoints there are: those that may get requests, all, and those that only finish what they run."""

    ready: int = 0
    total: int = 0
    draining: int = 0

    @computed_field  # type: ignore[prop-decorator]  # mypy knows no decorated properties
    @property
    def summary(self) -> str:
        """Ready of all, as a column shows it."""
        return f"{self.ready}/{self.total}"


class GatewayReport(Part):
    """What the gateway says about itself; written by the gateway alone."""

    pod_uid: Annotated[str | None, Field(alias="podUID")] = None
    config_hash: str | None = None
    endpoints_ready: int = 0
    endpoints_total: int = 0
    endpoints_draining: int = 0
    accelerators: int = 0
    models: tuple[str, ...] = ()
    left_out: str = ""


class FairPoolStatus(Part):
    """What has become of a FairPool; `gateway` is its gateway's own report."""

    observed_generation: int | None = None
    conditions: tuple[Condition, ...] = ()
    url: str | None = None
    endpoints: EndpointCounts | None = None
    accelerators: int | None = None
    tenants: int | None = None
    total_weight: int | None = None
    config_hash: str | None = None
    gateway: GatewayReport | None = None


class TenantWeightStatus(Part):
    """What has become of a TenantWeight: its tenant's name in the pool, and the weight in force there.

    The hash is that of the tenant's own part of the configuration, once a gateway was seen to use it.
    """

    observed_generation: int | None = None
    conditions: tuple[Condition, ...] = ()
    tenant: str | None = None
    weight: int | None = None
    config_hash: str | None = None
