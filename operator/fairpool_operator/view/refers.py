"""Which Secrets a resource names: always of its own namespace, so that nobody reaches into another's."""

from __future__ import annotations

from fairpool_operator.resources import FairPool, TenantWeight

SecretName = tuple[str, str]
"""A namespace and the name of a Secret in it."""


def secrets_of_pool(pool: FairPool) -> frozenset[SecretName]:
    """The Secrets that a FairPool names."""
    endpoints, gateway = pool.spec.endpoints, pool.spec.gateway
    references = (
        endpoints.tls.ca_certificate_ref if endpoints.tls else None,
        endpoints.credential_ref,
        gateway.tls.certificate_ref if gateway.tls else None,
        pool.spec.authentication.proxy_credential_ref,
    )
    return frozenset((pool.metadata.namespace, each.name) for each in references if each is not None)


def secrets_of_weight(weight: TenantWeight) -> frozenset[SecretName]:
    """The Secrets that a TenantWeight names."""
    references = (key.secret_key_ref for key in weight.spec.api_keys)
    return frozenset((weight.metadata.namespace, each.name) for each in references if each is not None)
