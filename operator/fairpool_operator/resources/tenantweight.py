"""TenantWeight: one tenant of one pool, its weight, and the keys by which its requests are known."""

from __future__ import annotations

from fairpool_gateway.config import OwnQueueSettings
from fairpool_gateway.config.names import Digest, KeyName, TenantName
from fairpool_gateway.config.quantities import Instant, Truth
from fairpool_gateway.config.settings import Weight
from fairpool_operator.resources.metadata import Metadata
from fairpool_operator.resources.part import Part
from fairpool_operator.resources.references import SecretKeyRef
from fairpool_operator.resources.status import TenantWeightStatus


class PoolRef(Part):
    """The pool; in the tenant's own namespace where none is given."""

    name: str
    namespace: str | None = None


class ApiKey(Part):
    """One key, in a Secret of the tenant's own namespace or by its digest alone, and the last instant it is good."""

    name: KeyName
    secret_key_ref: SecretKeyRef | None = None
    digest: Digest | None = None
    not_after: Instant | None = None


class TenantWeightSpec(Part):
    """What is wanted for the tenant; the pool's default weight where none is given."""

    pool_ref: PoolRef
    tenant_name: TenantName | None = None
    weight: Weight | None = None
    api_keys: tuple[ApiKey, ...] = ()
    queue: OwnQueueSettings = OwnQueueSettings()
    suspend: Truth = False


class TenantWeight(Part):
    """The resource."""

    metadata: Metadata
    spec: TenantWeightSpec
    status: TenantWeightStatus = TenantWeightStatus()

    @property
    def pool(self) -> tuple[str, str]:
        """The namespace and the name of its pool."""
        return self.spec.pool_ref.namespace or self.metadata.namespace, self.spec.pool_ref.name

    @property
    def tenant(self) -> str:
        """What its tenant is called in the pool.

        One from another namespace is called after that as well, so that no namespace can claim another's tenants.
        """
        name = self.spec.tenant_name or self.metadata.name
        namespace, _ = self.pool
        return name if namespace == self.metadata.namespace else f"{self.metadata.namespace}/{name}"
