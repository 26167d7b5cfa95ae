"""What a pool needs in its namespace, as it is applied: one gateway, and no right or door more than it needs."""

from fairpool_operator.compile.objects.access import role, role_binding, service_account
from fairpool_operator.compile.objects.common import labels_of, url_of
from fairpool_operator.compile.objects.deployment import CONTAINER, deployment
from fairpool_operator.compile.objects.network import network_policy, service
from fairpool_operator.compile.objects.secret import HASH, config_secret

__all__ = [
    "CONTAINER",
    "HASH",
    "config_secret",
    "deployment",
    "labels_of",
    "network_policy",
    "role",
    "role_binding",
    "service",
    "service_account",
    "url_of",
]
