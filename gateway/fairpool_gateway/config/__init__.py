"""The configuration of one pool: the contract that an operator, or a person, writes and the gateway reads."""

from fairpool_gateway.config.loading import dump, load
from fairpool_gateway.config.pool import ANONYMOUS, PoolConfig
from fairpool_gateway.config.settings import (
    AuthenticationSettings,
    CostSettings,
    EndpointSettings,
    KeySettings,
    QueueSettings,
    SlotSettings,
    TenantQueueSettings,
    TenantSettings,
    TimeoutSettings,
)

__all__ = [
    "ANONYMOUS",
    "AuthenticationSettings",
    "CostSettings",
    "EndpointSettings",
    "KeySettings",
    "PoolConfig",
    "QueueSettings",
    "SlotSettings",
    "TenantQueueSettings",
    "TenantSettings",
    "TimeoutSettings",
    "dump",
    "load",
]
