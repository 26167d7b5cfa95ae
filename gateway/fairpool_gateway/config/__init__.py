"""The configuration of one pool: the contract that an operator, or a person, writes and the gateway reads."""

from fairpool_gateway.config.loading import dump, load
from fairpool_gateway.config.names import PROXY_CREDENTIAL_HEADER, may_name_a_tenant
from fairpool_gateway.config.paths import PATHS
from fairpool_gateway.config.pool import ANONYMOUS, PoolConfig
from fairpool_gateway.config.settings import (
    AcceleratorSettings,
    AuthenticationSettings,
    CostSettings,
    CredentialSettings,
    DiscoverySettings,
    EndpointSettings,
    EndpointTlsSettings,
    KeySettings,
    OwnQueueSettings,
    ProbeSettings,
    ProxyCredentialSettings,
    QueueSettings,
    RequirementSettings,
    SelectorSettings,
    SlotSettings,
    TargetPortSettings,
    TenantQueueSettings,
    TenantSettings,
    TimeoutSettings,
)

__all__ = [
    "ANONYMOUS",
    "PATHS",
    "PROXY_CREDENTIAL_HEADER",
    "AcceleratorSettings",
    "AuthenticationSettings",
    "CostSettings",
    "CredentialSettings",
    "DiscoverySettings",
    "EndpointSettings",
    "EndpointTlsSettings",
    "KeySettings",
    "OwnQueueSettings",
    "PoolConfig",
    "ProbeSettings",
    "ProxyCredentialSettings",
    "QueueSettings",
    "RequirementSettings",
    "SelectorSettings",
    "SlotSettings",
    "TargetPortSettings",
    "TenantQueueSettings",
    "TenantSettings",
    "TimeoutSettings",
    "dump",
    "load",
    "may_name_a_tenant",
]
