"""FairPool and TenantWeight: the resources of the API, and what is said about them."""

from fairpool_operator.resources.conditions import READY, STALLED, Finding, conditions, summarise
from fairpool_operator.resources.deployment import GatewaySettings, NetworkPolicySettings, PodTemplate
from fairpool_operator.resources.fairpool import (
    Accelerators,
    AllowedTenants,
    Authentication,
    EngineTls,
    FairPool,
    FairPoolSpec,
    PoolEndpoints,
    TargetPort,
)
from fairpool_operator.resources.metadata import Metadata
from fairpool_operator.resources.reading import read_metadata, read_pool, read_tenant_weight
from fairpool_operator.resources.selectors import LabelRequirement, LabelSelector
from fairpool_operator.resources.status import (
    Condition,
    EndpointCounts,
    FairPoolStatus,
    GatewayReport,
    TenantWeightStatus,
)
from fairpool_operator.resources.tenantweight import ApiKey, PoolRef, TenantWeight, TenantWeightSpec

__all__ = [
    "READY",
    "STALLED",
    "Accelerators",
    "AllowedTenants",
    "ApiKey",
    "Authentication",
    "Condition",
    "EndpointCounts",
    "EngineTls",
    "FairPool",
    "FairPoolSpec",
    "FairPoolStatus",
    "Finding",
    "GatewayReport",
    "GatewaySettings",
    "LabelRequirement",
    "LabelSelector",
    "Metadata",
    "NetworkPolicySettings",
    "PodTemplate",
    "PoolEndpoints",
    "PoolRef",
    "TargetPort",
    "TenantWeight",
    "TenantWeightSpec",
    "TenantWeightStatus",
    "conditions",
    "read_metadata",
    "read_pool",
    "read_tenant_weight",
    "summarise",
]
