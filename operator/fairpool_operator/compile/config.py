"""The one `PoolConfig` of a pool, and how it travels to the gateway.

What always holds: equal resources give equal bytes, whatever their order, so the hash of the configuration says whether
a gateway has it; keys are in it as digests only; every part that a resource and the configuration both have is passed
on as it is. Where not all tenants fit, those of the pool's own namespace do before any other.
"""

from __future__ import annotations

import gzip
import hashlib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from pydantic import ValidationError

from fairpool_gateway.config import PoolConfig, TenantSettings, dump
from fairpool_gateway.config.problems import describe
from fairpool_operator.compile.references import References
from fairpool_operator.errors import ConfigTooLarge, Invalid
from fairpool_operator.resources import FairPool, FairPoolSpec

MOST_BYTES: Final = 1_000_000
"""Of the Secret that holds it: a little less than the API server takes."""

_UNEVEN: Final = 8

ENGINE_DIRECTORY: Final = "/etc/fairpool/engine"
AUTHORITY_DIRECTORY: Final = "/etc/fairpool/engine-ca"
"""Where the gateway's pod has the engines' credential, and the authorities that vouch for them."""

_SHARED: Final = sorted(
    PoolConfig.model_fields.keys() & FairPoolSpec.model_fields.keys() - {"endpoints", "authentication"}
)
_SAID_AS: Final = {
    "discovery": "endpoints",
    "endpointTls": "endpoints.tls",
    "authentication.proxyCredential": "authentication.proxyCredentialRef",
}
"""How a resource calls what the configuration calls otherwise."""


@dataclass(frozen=True, slots=True)
class Packed:
    """A configuration as the gateway gets it, and the hash by which it is known."""

    config: PoolConfig
    hash: str
    compressed: bytes

    @property
    def size(self) -> int:
        """Its bytes."""
        return len(self.compressed)

    @property
    def fits(self) -> bool:
        """Whether one Secret can hold it."""
        return self.size <= MOST_BYTES


def settings_of(pool: FairPool, references: References) -> dict[str, Any]:
    """What the pool alone says, by the configuration's names.

    Raises:
        Invalid: its fields do not go together.
    """
    fields = _fields(pool, references)
    _checked(fields)
    return fields


def configured(fields: dict[str, Any], own: Iterable[TenantSettings], others: Sequence[TenantSettings] = ()) -> Packed:
    """The configuration of a pool, its own tenants, and as many others as fit, in their order.

    Raises:
        Invalid: they do not go together.
        ConfigTooLarge: one Secret cannot hold its own tenants alone.
    """
    own = tuple(own)
    config = _checked({**fields, "tenants": _by_name(own, others)})
    packed = _packed(config)
    if packed.fits:
        return packed
    best = _packed(_shared_by(config, own))
    if not best.fits:
        raise _too_large(best)
    return _filled(config, own, others, best, packed)


def _filled(
    config: PoolConfig, own: tuple[TenantSettings, ...], others: Sequence[TenantSettings], best: Packed, full: Packed
) -> Packed:
    """With as many of the others as fit, where none do and all do not.

    Found by the Illinois form of false position (Dowell and Jarratt, BIT 11, 1971), for sizes grow evenly: some five
    configurations are packed, of which each takes a large part of a second, where halves would take fifteen. Where
    sizes are so uneven that it has not ended after `_UNEVEN`, halves go on.
    """
    fitting, beyond, side, tries = 0, len(others), 0, 0
    room, excess = float(MOST_BYTES - best.size), float(full.size - MOST_BYTES)
    while beyond - fitting > 1:
        tries += 1
        part = room / (room + excess) if tries <= _UNEVEN else 0.5
        tried = min(max(fitting + round((beyond - fitting) * part), fitting + 1), beyond - 1)
        packed = _packed(_shared_by(config, own, others[:tried]))
        if packed.fits:
            best, fitting, room = packed, tried, float(MOST_BYTES - packed.size)
            excess /= 2 if side > 0 else 1
            side = 1
        else:
            beyond, excess = tried, float(packed.size - MOST_BYTES)
            room /= 2 if side < 0 else 1
            side = -1
    return best


def digest(text: bytes) -> str:
    """By what a configuration, or a part of it, is told from another."""
    return hashlib.sha256(text).hexdigest()[:16]


def _by_name(own: Iterable[TenantSettings], others: Iterable[TenantSettings] = ()) -> tuple[TenantSettings, ...]:
    return tuple(sorted((*own, *others), key=lambda tenant: tenant.name))


def _shared_by(config: PoolConfig, own: Iterable[TenantSettings], others: Iterable[TenantSettings] = ()) -> PoolConfig:
    """The same for some of its tenants, who go together as all of them do."""
    return config.model_copy(update={"tenants": _by_name(own, others)})


def _packed(config: PoolConfig) -> Packed:
    text = dump(config).encode()
    return Packed(config, digest(text), gzip.compress(text, mtime=0))


def _too_large(packed: Packed) -> ConfigTooLarge:
    tenants = packed.config.tenants
    return ConfigTooLarge(
        f"The configuration has {packed.size:,} bytes, and only {MOST_BYTES:,} fit into a Secret: the last "
        f"one that did stays in force. Remove TenantWeights or keys ({len(tenants):,} tenants, "
        f"{sum(len(tenant.keys) for tenant in tenants):,} keys), or divide the pool."
    )


def _fields(pool: FairPool, references: References) -> dict[str, Any]:
    spec = pool.spec
    tls, credential, authentication = spec.endpoints.tls, spec.endpoints.credential_ref, spec.authentication
    fields: dict[str, Any] = {name: getattr(spec, name) for name in _SHARED}
    fields["pool"] = pool.metadata.name
    fields["discovery"] = {
        "selector": spec.endpoints.selector.written(),
        "target_ports": [port.written() for port in spec.endpoints.target_ports],
        "accelerators": spec.endpoints.accelerators.written(),
        "tls": tls is not None,
    }
    fields["authentication"] = {
        **authentication.model_dump(exclude={"proxy_credential_ref"}, exclude_none=True, by_alias=False),
        "proxy_credential": references.proxy_credential,
    }
    if tls is not None:
        ca_file = f"{AUTHORITY_DIRECTORY}/{tls.ca_certificate_ref.key}"
        fields["endpoint_tls"] = {"ca_file": ca_file, "server_name": tls.server_name}
    if credential is not None:
        fields["endpoint_credential"] = {"from_file": f"{ENGINE_DIRECTORY}/{credential.key}"}
    return fields


def _checked(fields: dict[str, Any]) -> PoolConfig:
    try:
        return PoolConfig.model_validate(fields)
    except ValidationError as error:
        problems = describe(error, {}, "spec")
    # Outside the handler, so that no traceback shows the validation error, which quotes the resource.
    raise Invalid(" ".join(f"{_in_the_resource(problem)}." for problem in problems))


def _in_the_resource(problem: str) -> str:
    """The problem, at its place in the resource."""
    for path, said_as in _SAID_AS.items():
        if re.match(rf"{re.escape(path)}\b", problem):
            problem = said_as + problem.removeprefix(path)
    return f"spec.{problem}"
