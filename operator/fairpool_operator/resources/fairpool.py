"""FairPool: one group of inference pods that serve the same models, and the rules by which tenants share them.

Where the gateway's configuration has the same part it is used here as it is, so that a pool means the same in a
resource and in a file.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from fairpool_gateway.config import (
    CostSettings,
    ProbeSettings,
    QueueSettings,
    SlotSettings,
    TimeoutSettings,
)
from fairpool_gateway.config.names import HeaderName, ModelName, ServerName
from fairpool_gateway.config.paths import ExtraPath
from fairpool_gateway.config.quantities import Count, Truth
from fairpool_gateway.config.settings import Overtaking, Weight
from fairpool_operator.resources.deployment import GatewaySettings
from fairpool_operator.resources.metadata import Metadata
from fairpool_operator.resources.part import Part
from fairpool_operator.resources.references import AuthorityRef, CredentialRef, ProxyCredentialRef
from fairpool_operator.resources.selectors import LabelSelector
from fairpool_operator.resources.status import FairPoolStatus


class TargetPort(Part):
    """A port of every pod: its number, or its name in the pod's containers; exactly one of the two."""

    number: int | None = None
    name: str | None = None


class EngineTls(Part):
    """How engines prove themselves over HTTPS: who vouches for them, and for which name."""

    ca_certificate_ref: AuthorityRef
    server_name: ServerName


class Accelerators(Part):
    """Which resources of a pod count as accelerators, and whether a pod without any is served."""

    policy: Literal["Require", "Observe"] = "Require"
    resource_names: tuple[str, ...] = (
        "nvidia.com/gpu",
        "amd.com/gpu",
        "gpu.intel.com/i915",
        "gpu.intel.com/xe",
        "habana.ai/gaudi",
        "google.com/tpu",
        "aws.amazon.com/neuron",
    )


class PoolEndpoints(Part):
    """Which pods serve the pool, and how they are reached."""

    selector: LabelSelector
    target_ports: tuple[TargetPort, ...]
    tls: EngineTls | None = None
    credential_ref: CredentialRef | None = None
    accelerators: Accelerators = Accelerators()


class Authentication(Part):
    """How a request says whose it is: by a tenant's key, or by the word of a trusted proxy.

    All but `type` is said for TrustedHeader only. Unknown tenants are refused where nothing is said, and 10,000 of them
    are told apart where they are admitted.
    """

    type: Literal["APIKey", "TrustedHeader"] = "APIKey"
    header: HeaderName | None = None
    proxy_credential_ref: ProxyCredentialRef | None = None
    unknown_tenants: Literal["Refuse", "Admit"] | None = None
    max_tenants: Count | None = None


class TenantNamespaces(Part):
    """The namespaces whose TenantWeights count: the pool's own, those that `selector` chooses too, or all."""

    from_: Annotated[Literal["Same", "Selector", "All"], Field(alias="from")] = "Same"
    selector: LabelSelector | None = None


class AllowedTenants(Part):
    """The pool's consent to tenants, and the greatest weight of those from other namespaces."""

    namespaces: TenantNamespaces = TenantNamespaces()
    max_weight: Weight = 300


class FairPoolSpec(Part):
    """What the platform team wants."""

    models: tuple[ModelName, ...] = ()
    extra_paths: tuple[ExtraPath, ...] = ()
    endpoints: PoolEndpoints
    probe: ProbeSettings = ProbeSettings()
    slots: SlotSettings = SlotSettings()
    queue: QueueSettings = QueueSettings()
    timeouts: TimeoutSettings = TimeoutSettings()
    cost: CostSettings = CostSettings()
    authentication: Authentication = Authentication()
    allowed_tenants: AllowedTenants = AllowedTenants()
    default_weight: Weight = 100
    overtaking: Overtaking = "Refuse"
    suspend: Truth = False
    gateway: GatewaySettings = GatewaySettings()


class FairPool(Part):
    """The resource."""

    metadata: Metadata
    spec: FairPoolSpec
    status: FairPoolStatus = FairPoolStatus()
