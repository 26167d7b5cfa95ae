"""What the admin port says, field by field: its OpenAPI schema is made from these classes, and its answers hold to it.

Times are UTC in RFC 3339, names of tenants are null where nobody knows whose a request was.
"""

from __future__ import annotations

from dataclasses import dataclass

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel


@dataclass(frozen=True, slots=True)
class Alive:
    """Whoever reads this has been answered."""

    status: str = "ok"


class Readiness(BaseModel):
    """Whether tenants should be sent here, and what is not as it should be; what is absent is well."""

    model_config = ConfigDict(alias_generator=to_camel, validate_by_name=True, serialize_by_alias=True, frozen=True)

    status: str
    endpoints: int | None = None
    left_out: str | None = None
    config: str | None = None
    credential: str | None = None
    certificate: str | None = None
    config_followed: str | None = None
    pods_followed: str | None = None
    status_followed: str | None = None


@dataclass(frozen=True, slots=True)
class MeterView:
    """One tenant's place in the order; `lead` is in tokens per weight."""

    tenant: str
    weight: int
    waiting: int
    meter: int
    lead: float


@dataclass(frozen=True, slots=True)
class EndpointView:
    """One endpoint: its slots, what is outstanding on it, and how it stands."""

    endpoint: str
    address: str
    slots: int
    in_flight: int
    outstanding: int
    draining: bool
    wanting: str | None
    standing: str
    out_for_seconds: float
    ejected: int


@dataclass(frozen=True, slots=True)
class PoolView:
    """The whole pool at this moment; meters and `v` are in units of `1/q` token."""

    pool: str
    q: int
    v: int
    waiting: int
    retrying: int
    held_bytes: int
    tenants: list[MeterView]
    endpoints: list[EndpointView]


@dataclass(frozen=True, slots=True)
class TenantView:
    """What one tenant asked for and got since this gateway began, in requests and in tokens.

    `debt` is what it owes now, or below 0 has to its credit; null where the pool does not carry.
    """

    tenant: str | None
    weight: int | None
    share: float
    charged_share: float
    in_flight: int
    debt: int | None
    waited_seconds: float
    arrived: int
    dispatched: int
    completed: int
    retried: int
    removed: int
    charged: int
    used: int
    input: int
    output: int
    overestimated: int
    underestimated: int
    outcomes: dict[str, int]


@dataclass(frozen=True, slots=True)
class TenantsView:
    """All tenants that are told apart, and two rows more: the others, and nobody."""

    charged_tokens: int
    tenants: list[TenantView]


@dataclass(frozen=True, slots=True)
class UsedView:
    """What a request used, in tokens, and whether its endpoint told that; of how many events its stream was."""

    input: int
    output: int
    events: int
    told: bool


@dataclass(frozen=True, slots=True)
class DispatchView:
    """One request that was dispatched: how long it waited, what it was estimated to cost and charged, and its end."""

    request: str
    id: str
    tenant: str
    model: str
    dispatched: str
    waited_seconds: float
    estimate: int
    cost: int
    endpoint: str | None
    failed_on: list[str]
    state: str
    used: UsedView | None


@dataclass(frozen=True, slots=True)
class RefusalView:
    """One request that was refused."""

    request: str
    tenant: str | None
    refused: str
    reason: str


@dataclass(frozen=True, slots=True)
class RequestsView:
    """The last requests, the newest first."""

    dispatches: list[DispatchView]
    refusals: list[RefusalView]


@dataclass(frozen=True, slots=True)
class KeyView:
    """One key: whose it is, and since when or until when."""

    tenant: str
    key: str
    not_after: str | None
    last_used: str | None


@dataclass(frozen=True, slots=True)
class KeysView:
    """All keys."""

    keys: list[KeyView]
