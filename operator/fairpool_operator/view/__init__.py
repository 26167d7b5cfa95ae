"""What the operator looks at when it decides about one pool: a frozen snapshot, with no Secret's value in it."""

from fairpool_operator.view.owned import GATEWAY, MANAGED, OWNED_KINDS, Object, Owned, object_name, pool_of, read_owned
from fairpool_operator.view.refers import secrets_of_pool, secrets_of_weight
from fairpool_operator.view.secrets import CONFIG, ENGINE, KEYS, LABEL, TLS, Secret, Value, hashed, read_secret
from fairpool_operator.view.snapshot import GatewayPod, PoolKey, Unread, Unwritten, View, read_pod, read_unread

__all__ = [
    "CONFIG",
    "ENGINE",
    "GATEWAY",
    "KEYS",
    "LABEL",
    "MANAGED",
    "OWNED_KINDS",
    "TLS",
    "GatewayPod",
    "Object",
    "Owned",
    "PoolKey",
    "Secret",
    "Unread",
    "Unwritten",
    "Value",
    "View",
    "hashed",
    "object_name",
    "pool_of",
    "read_owned",
    "read_pod",
    "read_secret",
    "read_unread",
    "secrets_of_pool",
    "secrets_of_weight",
]
