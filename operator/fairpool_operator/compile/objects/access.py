"""Who the gateway is to the API server, and the little that it may do there.

What always holds: it may follow the pods of its namespace, read the one Secret that holds its configuration, and write
the status of its own pool; nothing else.
"""

from __future__ import annotations

from fairpool_operator.compile.objects.common import named
from fairpool_operator.resources import FairPool
from fairpool_operator.view import Object, object_name

_RBAC = "rbac.authorization.k8s.io"


def service_account(pool: FairPool) -> Object:
    """The gateway's identity; its pod mounts the token, other pods that use the account get none."""
    return named("v1", "ServiceAccount", pool, automountServiceAccountToken=False)


def role(pool: FairPool) -> Object:
    """What the gateway may do."""
    name = pool.metadata.name
    rules = [
        {"apiGroups": [""], "resources": ["pods"], "verbs": ["list", "watch"]},
        {
            "apiGroups": [""],
            "resources": ["secrets"],
            "resourceNames": [object_name("Secret", name)],
            "verbs": ["get", "list", "watch"],
        },
        {
            "apiGroups": ["fairpool.dev"],
            "resources": ["fairpools/status"],
            "resourceNames": [name],
            "verbs": ["get", "patch"],
        },
    ]
    return named(f"{_RBAC}/v1", "Role", pool, rules=rules)


def role_binding(pool: FairPool) -> Object:
    """That the gateway may do it."""
    name = pool.metadata.name
    account = {
        "kind": "ServiceAccount",
        "name": object_name("ServiceAccount", name),
        "namespace": pool.metadata.namespace,
    }
    return named(
        f"{_RBAC}/v1",
        "RoleBinding",
        pool,
        roleRef={"apiGroup": _RBAC, "kind": "Role", "name": object_name("Role", name)},
        subjects=[account],
    )
