"""`PoolConfig`: one pool as its gateway serves it; what an operator writes and a gateway reads.

What always holds: a `PoolConfig` is consistent, so nothing that uses one checks it again. Keys are in it as digests
only.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import Annotated, Literal, Self

from pydantic import BeforeValidator, model_validator

from fairpool_gateway.config.names import ModelName, PoolName
from fairpool_gateway.config.quantities import format_size
from fairpool_gateway.config.settings import (
    AuthenticationSettings,
    CostSettings,
    EndpointSettings,
    QueueSettings,
    Settings,
    SlotSettings,
    TenantSettings,
    TimeoutSettings,
    Weight,
)
from fairpool_gateway.config.shown import shown

ANONYMOUS = "anonymous"
"""The one tenant of a pool that asks for no keys."""

Path = tuple[str | int, ...]
"""A place in a file, by the file's own names: `("tenants", 2, "weight")`."""

Problems = Iterator[tuple[Path, str]]


class RulesBroken(ValueError):
    """Fields that are each right but do not go together: one problem for each place that has to change."""

    def __init__(self, problems: list[tuple[Path, str]]) -> None:
        super().__init__("; ".join(message for _, message in problems))
        self.problems = problems


def _version(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value != 1:
        raise ValueError(f"must be 1, the only version that this gateway reads, not {shown(value)}")
    return value


class PoolConfig(Settings):
    """One pool: who shares which endpoints, and by which rules."""

    version: Annotated[Literal[1], BeforeValidator(_version)] = 1
    pool: PoolName
    models: tuple[ModelName, ...]
    tenants: tuple[TenantSettings, ...] = ()
    endpoints: tuple[EndpointSettings, ...]
    slots: SlotSettings = SlotSettings()
    queue: QueueSettings = QueueSettings()
    timeouts: TimeoutSettings = TimeoutSettings()
    cost: CostSettings = CostSettings()
    authentication: AuthenticationSettings = AuthenticationSettings()
    default_weight: Weight = 100

    def weights(self) -> dict[str, int]:
        """The weight of every tenant that is listed."""
        return {tenant.name: tenant.weight or self.default_weight for tenant in self.tenants}

    def slots_of(self, endpoint: EndpointSettings) -> int:
        """How many requests this endpoint may have outstanding."""
        return endpoint.slots or self.slots.per_endpoint

    @model_validator(mode="after")
    def _goes_together(self) -> Self:
        problems = [problem for rule in _RULES for problem in rule(self)]
        if problems:
            raise RulesBroken(problems)
        return self


def _something_is_served(config: PoolConfig) -> Problems:
    if not config.models:
        yield ("models",), "must not be empty: list the models that the endpoints serve"


def _names_are_unique(config: PoolConfig) -> Problems:
    for index, first in _repeated(config.models):
        yield ("models", index), f"is in the list already, as models[{first}]"
    for index, first in _repeated(tenant.name for tenant in config.tenants):
        yield ("tenants", index, "name"), f"is the name of tenants[{first}] too: make them one, with the keys of both"
    for index, first in _repeated(endpoint.name for endpoint in config.endpoints):
        yield ("endpoints", index, "name"), f"is the name of endpoints[{first}] too: choose another"
    for index, first in _repeated(endpoint.url for endpoint in config.endpoints):
        yield ("endpoints", index, "url"), f"is endpoints[{first}] too, whose slots would count twice: remove one"


def _keys_tell_tenants_apart(config: PoolConfig) -> Problems:
    owners: dict[str, tuple[int, int]] = {}
    for index, tenant in enumerate(config.tenants):
        for number, key in enumerate(tenant.keys):
            owner, place = owners.setdefault(key.digest, (index, number))
            name = config.tenants[owner].name
            if name != tenant.name:
                message = f"is tenants[{owner}].keys[{place}] of tenant {name} too: a key can be one tenant's only"
                yield ("tenants", index, "keys", number, "digest"), message


def _somebody_can_enter(config: PoolConfig) -> Problems:
    if config.authentication.type == "Anonymous":
        yield from _everybody_is_anonymous(config)
    elif not any(tenant.keys for tenant in config.tenants):
        message = (
            "no tenant has a key, so nobody could send a request: list the digests of their keys, "
            "or set authentication.type to Anonymous where everybody is trusted"
        )
        yield ("tenants",), message


def _everybody_is_anonymous(config: PoolConfig) -> Problems:
    for index, tenant in enumerate(config.tenants):
        if tenant.name != ANONYMOUS:
            message = (
                f"is nobody's: authentication.type Anonymous makes everybody {ANONYMOUS}; remove it, or use APIKey"
            )
            yield ("tenants", index, "name"), message
        elif tenant.keys:
            message = "are never asked for: authentication.type is Anonymous; remove them, or use APIKey"
            yield ("tenants", index, "keys"), message


def _what_may_be_sent_may_wait(config: PoolConfig) -> Problems:
    """Otherwise the largest requests would be told to retry, for ever in vain."""
    largest = config.queue.max_request_bytes
    bounds: dict[Path, int] = {
        ("queue", "maxBytes"): config.queue.max_bytes,
        ("queue", "perTenant", "maxBytes"): config.queue.per_tenant.max_bytes,
    }
    for path, most in bounds.items():
        if most < largest:
            message = (
                f"must be at least queue.maxRequestBytes, {format_size(largest)}, not {format_size(most)}, "
                "or the largest requests could never wait: raise this or lower that"
            )
            yield path, message


def _something_costs(config: PoolConfig) -> Problems:
    if not config.cost.input_weight and not config.cost.output_weight:
        yield ("cost",), "inputWeight and outputWeight must not both be 0: all requests would cost the same"


_RULES: tuple[Callable[[PoolConfig], Problems], ...] = (
    _something_is_served,
    _names_are_unique,
    _keys_tell_tenants_apart,
    _somebody_can_enter,
    _what_may_be_sent_may_wait,
    _something_costs,
)


def _repeated(values: Iterable[Hashable]) -> Iterator[tuple[int, int]]:
    """The index of each value that was there before, and the index where it was first."""
    first: dict[Hashable, int] = {}
    for index, value in enumerate(values):
        earlier = first.setdefault(value, index)
        if earlier != index:
            yield index, earlier
