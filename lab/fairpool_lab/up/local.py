"""One pool as it is to be run here: the operator's own decision about it, with endpoints that are elsewhere.

What always holds: the configuration is the one that a cluster would get, but for where endpoints are and where files
are; what a cluster would say in conditions is said in the same words. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from fairpool_gateway.config import (
    PROXY_CREDENTIAL_HEADER,
    CredentialSettings,
    EndpointSettings,
    EndpointTlsSettings,
    PoolConfig,
    TenantSettings,
)
from fairpool_lab.up.endpoints import NO_ENDPOINTS, Endpoints
from fairpool_lab.up.resources import Resources
from fairpool_operator.compile import Compiled, Settings, TenantStatus, compile_pool
from fairpool_operator.errors import ReferenceRefused
from fairpool_operator.resources import FairPool, Metadata, TenantWeight
from fairpool_operator.store import Store
from fairpool_operator.view import PoolKey, View

_SETTINGS: Final = Settings(gateway_image="none")
TLS_CERTIFICATE, TLS_KEY = "tls/tls.crt", "tls/tls.key"


@dataclass(frozen=True, slots=True)
class Tenant:
    """One TenantWeight of a pool.

    Attributes:
        name: the tenant's.
        weight: the weight in force; None if it has no part in the pool.
        notes: what was made of it other than it says.
        problems: where and why a condition is false.
        credential: headers by which its requests are known, as far as the files hold what they need.
        key: its API key, if it has one and that is in a Secret in the files.
    """

    name: str
    weight: int | None
    notes: str
    problems: tuple[str, ...]
    credential: Mapping[str, str] = field(default_factory=dict, repr=False)
    key: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Local:
    """One pool.

    Attributes:
        key: which pool.
        place: where the FairPool stands; None: it is in no file.
        tenants: those who share it, and those that cannot.
        problems: where and why it cannot be served as it is now.
        idle: why there is nothing to serve.
        config: the configuration as a cluster would get it; None where there are problems.
        followed: where there are, what a gateway that serves already would get on a cluster all the same, if anything.
        endpoints: where its endpoints are.
        files: what a cluster would mount from Secrets, by path.
        over_tls: whether tenants are served over TLS.
        changes_at: when time alone will change this; None: never.
    """

    key: PoolKey
    place: str | None = None
    tenants: tuple[Tenant, ...] = ()
    problems: tuple[str, ...] = ()
    idle: str | None = None
    config: PoolConfig | None = None
    followed: PoolConfig | None = None
    endpoints: Endpoints = NO_ENDPOINTS
    files: Mapping[str, bytes] = field(default_factory=dict, repr=False)
    over_tls: bool = False
    changes_at: datetime | None = None


def decide(key: PoolKey, resources: Resources, store: Store, endpoints: Endpoints, now: datetime) -> Local:
    """What is to be run of one pool, and said about it."""
    view = _with(endpoints, store.view(key))
    compiled = compile_pool(view, _SETTINGS, now)
    tenants = tuple(_tenants(view, compiled, resources, now))
    if view.pool is None:
        return Local(key, tenants=tenants)
    place = resources.place("FairPool", *key)
    unmet = (f"{place}: {each}" for each in _unmet(compiled.config, endpoints))
    problems = (*_refused("FairPool", view.pool.metadata, compiled, resources), *unmet)
    local = Local(key, place, tenants, problems, endpoints=endpoints, changes_at=compiled.changes_at)
    if problems or compiled.config is None:
        return replace(local, followed=compiled.config)
    return replace(
        local,
        idle=serves_nobody(compiled.config),
        config=compiled.config,
        files=dict(_files(view.pool, resources)),
        over_tls=view.pool.spec.gateway.tls is not None,
    )


def configured(config: PoolConfig, endpoints: Sequence[EndpointSettings], directory: Path) -> PoolConfig:
    """A pool's configuration with these endpoints, and with files in that directory."""
    fields: dict[str, Any] = {name: getattr(config, name) for name in PoolConfig.model_fields}
    over_tls = any(endpoint.over_tls for endpoint in endpoints)
    return PoolConfig.model_validate(
        {
            **fields,
            "discovery": None,
            "endpoints": tuple(endpoints),
            "endpoint_tls": _authority(config.endpoint_tls, directory) if over_tls else None,
            "endpoint_credential": _credential(config.endpoint_credential, directory),
        }
    )


def _with(endpoints: Endpoints, view: View) -> View:
    """What is there, with as much said about engines as concerns those that are given."""
    if view.pool is None:
        return view
    spec = view.pool.spec
    unneeded: dict[str, None] = {}
    if not endpoints.over_tls:
        unneeded["tls"] = None
    if not endpoints.given:
        unneeded["credential_ref"] = None
    changed = spec.model_copy(update={"endpoints": spec.endpoints.model_copy(update=unneeded)})
    return replace(view, pool=view.pool.model_copy(update={"spec": changed}))


def _refused(kind: str, metadata: Metadata, compiled: Compiled, resources: Resources) -> Iterator[str]:
    """What is wrong with a resource: where, and in the words of the condition that is false for it."""
    for refusal in compiled.refusals:
        if (refusal.kind, refusal.metadata) == (kind, metadata):
            problem = refusal.problem
            condition = "ResolvedRefs" if isinstance(problem, ReferenceRefused) else "Accepted"
            place = resources.place(kind, metadata.namespace, metadata.name, problem.field)
            yield f"{place}: {condition}=False ({problem.reason}): {problem}"


def _unmet(config: PoolConfig | None, endpoints: Endpoints) -> Iterator[str]:
    """What the endpoints need that the pool does not say."""
    if not endpoints:
        yield (
            "where its engines are was not said at the start: end this, and give --endpoint POOL=URL for it, or "
            "--simulate N."
        )
    if config is not None and endpoints.over_tls and config.endpoint_tls is None:
        yield "an --endpoint is https: say in spec.endpoints.tls who vouches for it, and for which name."


def serves_nobody(config: PoolConfig) -> str | None:
    """Why nobody could send a request, if so; a gateway refuses such a configuration."""
    match config.authentication.type:
        case "APIKey" if not any(tenant.keys for tenant in config.tenants):
            return "no tenant has a key, so nobody could send a request: it is served once one has"
        case "TrustedHeader" if not config.tenants and config.authentication.unknown_tenants == "Refuse":
            return "there is no tenant, and unknown ones are refused: it is served once there is one"
    return None


def _tenants(view: View, compiled: Compiled, resources: Resources, now: datetime) -> Iterator[Tenant]:
    weights = {(each.metadata.namespace, each.metadata.name): each for each in view.weights}
    settings = {each.name: each for each in compiled.config.tenants} if compiled.config else {}
    for said in compiled.tenant_statuses:
        weight = weights[said.metadata.namespace, said.metadata.name]
        called = weight.tenant
        shares = f"Tenant {called} shares pool {view.key} with weight {said.status.weight}."
        tenant = Tenant(
            called,
            said.status.weight,
            _accepted(said).removeprefix(shares).strip() if said.status.weight else "",
            tuple(_refused("TenantWeight", said.metadata, compiled, resources)),
        )
        if view.pool is None or said.status.weight is None or called not in settings:
            yield tenant
        elif view.pool.spec.authentication.type == "APIKey":
            key = _key(weight, settings[called], resources, now)
            yield replace(tenant, key=key, credential={"Authorization": f"Bearer {key}"} if key else {})
        else:
            yield replace(tenant, credential=_trusted(view.pool, called, resources))


def _accepted(said: TenantStatus) -> str:
    return next((each.message for each in said.status.conditions if each.type == "Accepted"), "")


def _key(weight: TenantWeight, settings: TenantSettings, resources: Resources, now: datetime) -> str | None:
    """The first of a tenant's keys that is good, and in the files."""
    good = {key.name for key in settings.keys if key.not_after is None or key.not_after > now}
    for key in weight.spec.api_keys:
        if key.name in good and key.secret_key_ref is not None and key.digest is None:
            value = resources.value(weight.metadata.namespace, key.secret_key_ref.name, key.secret_key_ref.key)
            if value:
                return value.decode("ascii")
    return None


def _trusted(pool: FairPool, tenant: str, resources: Resources) -> dict[str, str]:
    """What a trusted proxy sends for a tenant."""
    reference, header = pool.spec.authentication.proxy_credential_ref, pool.spec.authentication.header
    if reference is None or header is None:
        return {}
    credential = resources.value(pool.metadata.namespace, reference.name, reference.key)
    return {PROXY_CREDENTIAL_HEADER: credential.decode("ascii"), header: tenant} if credential else {}


def _files(pool: FairPool, resources: Resources) -> Iterator[tuple[str, bytes]]:
    """Everything that a cluster would mount; each is there, for the references are resolved."""
    endpoints, tls, namespace = pool.spec.endpoints, pool.spec.gateway.tls, pool.metadata.namespace
    if endpoints.credential_ref is not None:
        reference = endpoints.credential_ref
        yield f"engine/{reference.key}", resources.value(namespace, reference.name, reference.key)
    if endpoints.tls is not None:
        authority = endpoints.tls.ca_certificate_ref
        yield f"engine-ca/{authority.key}", resources.value(namespace, authority.name, authority.key) + b"\n"
    if tls is not None:
        for path in (TLS_CERTIFICATE, TLS_KEY):
            yield path, resources.value(namespace, tls.certificate_ref.name, Path(path).name) + b"\n"


def _authority(settings: EndpointTlsSettings | None, directory: Path) -> EndpointTlsSettings | None:
    if settings is None:
        return None
    return settings.model_copy(update={"ca_file": str(directory / "engine-ca" / Path(settings.ca_file).name)})


def _credential(settings: CredentialSettings | None, directory: Path) -> CredentialSettings | None:
    if settings is None or settings.from_file is None:
        return settings
    return settings.model_copy(update={"from_file": str(directory / "engine" / Path(settings.from_file).name)})
