"""`PoolConfig`: one pool as its gateway serves it; what an operator writes and a gateway reads.

Its endpoints are listed, or found among the pods of the gateway's namespace. Empty `models` means what all endpoints
have in common.

What always holds: a `PoolConfig` is consistent, so nothing that uses one checks it again. Keys are in it as digests
only.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import Annotated, Literal, Self

from pydantic import BeforeValidator, model_validator

from fairpool_gateway.config.names import PROXY_CREDENTIAL_HEADER, ModelName, PoolName
from fairpool_gateway.config.paths import ExtraPath, apis_of
from fairpool_gateway.config.quantities import Truth, format_size
from fairpool_gateway.config.settings import (
    AuthenticationSettings,
    CostSettings,
    CredentialSettings,
    DiscoverySettings,
    EndpointSettings,
    EndpointTlsSettings,
    Overtaking,
    ProbeSettings,
    QueueSettings,
    Settings,
    SlotSettings,
    TenantQueueSettings,
    TenantSettings,
    TimeoutSettings,
    Weight,
)
from fairpool_gateway.config.shown import shown
from fairpool_gateway.cost import Api

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
    models: tuple[ModelName, ...] = ()
    extra_paths: tuple[ExtraPath, ...] = ()
    tenants: tuple[TenantSettings, ...] = ()
    endpoints: tuple[EndpointSettings, ...] = ()
    discovery: DiscoverySettings | None = None
    endpoint_tls: EndpointTlsSettings | None = None
    endpoint_credential: CredentialSettings | None = None
    probe: ProbeSettings = ProbeSettings()
    slots: SlotSettings = SlotSettings()
    queue: QueueSettings = QueueSettings()
    timeouts: TimeoutSettings = TimeoutSettings()
    cost: CostSettings = CostSettings()
    authentication: AuthenticationSettings = AuthenticationSettings()
    default_weight: Weight = 100
    overtaking: Overtaking = "Refuse"
    suspend: Truth = False

    def apis(self) -> dict[str, Api]:
        """Every path that reaches endpoints, with POST, and what its bodies are read as."""
        return apis_of(self.extra_paths)

    def weights(self) -> dict[str, int]:
        """The weight of every tenant that is listed."""
        return {tenant.name: tenant.weight or self.default_weight for tenant in self.tenants}

    def own_queues(self) -> dict[str, TenantQueueSettings]:
        """What a tenant may have waiting, for each that has bounds of its own."""
        every = self.queue.per_tenant
        return {
            tenant.name: TenantQueueSettings(
                max_requests=tenant.queue.max_requests or every.max_requests,
                max_bytes=tenant.queue.max_bytes or every.max_bytes,
            )
            for tenant in self.tenants
            if tenant.queue.max_requests or tenant.queue.max_bytes
        }

    def suspended(self) -> frozenset[str]:
        """The tenants that may not send requests for now."""
        return frozenset(tenant.name for tenant in self.tenants if tenant.suspend)

    def slots_of(self, endpoint: EndpointSettings) -> int:
        """How many requests this endpoint may have outstanding."""
        return endpoint.slots or self.slots.per_endpoint

    @model_validator(mode="after")
    def _goes_together(self) -> Self:
        problems = [problem for rule in _RULES for problem in rule(self)]
        if problems:
            raise RulesBroken(problems)
        return self


def _endpoints_are_said_in_one_way(config: PoolConfig) -> Problems:
    if config.discovery is None and "endpoints" not in config.model_fields_set:
        yield ("endpoints",), "is missing: list the inference servers, each with a name and a url"
    if config.discovery is not None and config.endpoints:
        yield ("endpoints",), "must be empty where discovery finds them: remove one of the two"


def _discovery_finds_something(config: PoolConfig) -> Problems:
    if config.discovery is None:
        return
    selector, ports = config.discovery.selector, config.discovery.target_ports
    if not selector.match_labels and not selector.match_expressions:
        message = "must not be empty, or every pod of the namespace would be meant: give matchLabels"
        yield ("discovery", "selector"), message
    for index, requirement in enumerate(selector.match_expressions):
        if (requirement.operator in {"In", "NotIn"}) != bool(requirement.values):
            message = "must be there with In and NotIn, and empty with Exists and DoesNotExist"
            yield ("discovery", "selector", "matchExpressions", index, "values"), message
    if not ports:
        yield ("discovery", "targetPorts"), "must not be empty: give the number or the name of the port to connect to"
    for index, port in enumerate(ports):
        if (port.number is None) == (port.name is None):
            yield ("discovery", "targetPorts", index), "must have either a number or a name"
    for index, first in _repeated((port.number, port.name) for port in ports):
        yield ("discovery", "targetPorts", index), f"is in the list already, as targetPorts[{first}]"
    accelerators = config.discovery.accelerators
    if accelerators.policy == "Require" and not accelerators.resource_names:
        message = "must not be empty with policy Require: name what pods ask for, such as nvidia.com/gpu"
        yield ("discovery", "accelerators", "resourceNames"), message


def _names_are_unique(config: PoolConfig) -> Problems:
    for index, first in _repeated(config.models):
        yield ("models", index), f"is in the list already, as models[{first}]"
    for index, first in _repeated(tenant.name for tenant in config.tenants):
        yield ("tenants", index, "name"), f"is the name of tenants[{first}] too: make them one, with the keys of both"
    for index, first in _repeated(endpoint.name for endpoint in config.endpoints):
        yield ("endpoints", index, "name"), f"is the name of endpoints[{first}] too: choose another"
    for index, first in _repeated((endpoint.host, endpoint.port) for endpoint in config.endpoints):
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
    """Nobody may be able to where an operator runs the pool, for its tenants come and go there."""
    match config.authentication.type:
        case "APIKey":
            yield from _tenants_have_keys(config)
        case "TrustedHeader":
            yield from _a_proxy_names_tenants(config)
        case "Anonymous":
            yield from _everybody_is_anonymous(config)


def _tenants_have_keys(config: PoolConfig) -> Problems:
    yield from _no_proxy_is_asked(config)
    if config.discovery is None and not any(tenant.keys for tenant in config.tenants):
        message = (
            "no tenant has a key, so nobody could send a request: list the digests of their keys, "
            "or set authentication.type to Anonymous where everybody is trusted"
        )
        yield ("tenants",), message


def _a_proxy_names_tenants(config: PoolConfig) -> Problems:
    settings = config.authentication
    if settings.header is None:
        message = "is missing: name the header in which the proxy gives the tenant, such as x-tenant"
        yield ("authentication", "header"), message
    if settings.proxy_credential is None:
        message = (
            f"is missing: give the digest of what the proxy sends in {PROXY_CREDENTIAL_HEADER}, "
            "or whoever reaches this gateway could name a tenant"
        )
        yield ("authentication", "proxyCredential"), message
    yield from _no_key_is_asked_for(config)
    if config.discovery is None and not config.tenants and settings.unknown_tenants == "Refuse":
        message = (
            "there are none and unknown ones are refused, so nobody could send a request: list them, "
            "or set authentication.unknownTenants to Admit"
        )
        yield ("tenants",), message


def _everybody_is_anonymous(config: PoolConfig) -> Problems:
    yield from _no_proxy_is_asked(config)
    for index, tenant in enumerate(config.tenants):
        if tenant.name != ANONYMOUS:
            message = (
                f"is nobody's: authentication.type Anonymous makes everybody {ANONYMOUS}; remove it, or use APIKey"
            )
            yield ("tenants", index, "name"), message
    yield from _no_key_is_asked_for(config)


def _no_key_is_asked_for(config: PoolConfig) -> Problems:
    for index, tenant in enumerate(config.tenants):
        if tenant.keys:
            message = (
                f"are never asked for: authentication.type is {config.authentication.type}; remove them, or use APIKey"
            )
            yield ("tenants", index, "keys"), message


def _no_proxy_is_asked(config: PoolConfig) -> Problems:
    settings = config.authentication
    given = {
        "header": settings.header is not None,
        "proxyCredential": settings.proxy_credential is not None,
        "unknownTenants": settings.unknown_tenants != "Refuse",
    }
    for field in (field for field, is_given in given.items() if is_given):
        message = f"means nothing: authentication.type is {settings.type}; remove it, or use TrustedHeader"
        yield ("authentication", field), message


def _https_is_verified(config: PoolConfig) -> Problems:
    over_tls = [index for index, endpoint in enumerate(config.endpoints) if endpoint.over_tls]
    if over_tls and config.endpoint_tls is None:
        message = (
            f"is missing: endpoints[{over_tls[0]}].url is https, so give caFile, which holds the authorities to trust, "
            "and serverName, which certificates have to be for"
        )
        yield ("endpointTls",), message
    if config.discovery is not None and config.discovery.tls != (config.endpoint_tls is not None):
        yield ("discovery", "tls"), "must be true where there is endpointTls, which says whom to trust, and only there"
    if config.endpoint_tls is not None and config.endpoints and not over_tls:
        yield ("endpointTls",), "means nothing: no endpoint's url is https; remove it, or write https there"


def _the_credential_is_in_one_place(config: PoolConfig) -> Problems:
    place = config.endpoint_credential
    if place is not None and (place.from_file is None) == (place.from_environment is None):
        yield ("endpointCredential",), "must say either fromFile or fromEnvironment: where the credential is"


def _what_may_be_sent_may_wait(config: PoolConfig) -> Problems:
    """Otherwise the largest requests would be told to retry, for ever in vain."""
    largest = config.queue.max_request_bytes
    bounds: dict[Path, int] = {
        ("queue", "maxBytes"): config.queue.max_bytes,
        ("queue", "perTenant", "maxBytes"): config.queue.per_tenant.max_bytes,
        **{
            ("tenants", index, "queue", "maxBytes"): tenant.queue.max_bytes
            for index, tenant in enumerate(config.tenants)
            if tenant.queue.max_bytes is not None
        },
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
    _endpoints_are_said_in_one_way,
    _discovery_finds_something,
    _names_are_unique,
    _keys_tell_tenants_apart,
    _somebody_can_enter,
    _https_is_verified,
    _the_credential_is_in_one_place,
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
