"""The gateway's Deployment: one process that orders everything, replaced without a gap.

What always holds: a new pod is ready before the old one ends, and the old one has the time to finish what it runs; the
pod is restricted as Kubernetes' strictest standard asks; no edit of tenants, weights, queues or anything else in the
configuration changes the pod, so none restarts it.
"""

from __future__ import annotations

import math
from typing import Any, Final

from fairpool_operator.compile.config import AUTHORITY_DIRECTORY, ENGINE_DIRECTORY
from fairpool_operator.compile.objects.common import (
    ADMIN,
    ADMIN_PORT,
    PORT,
    SERVING,
    chosen_by,
    labels_of,
    named,
    plain,
)
from fairpool_operator.compile.references import TLS_CERTIFICATE, TLS_KEY
from fairpool_operator.compile.settings import Settings
from fairpool_operator.resources import FairPool, PodTemplate
from fairpool_operator.resources.deployment import GatewayResources
from fairpool_operator.view import Object, object_name

CONTAINER: Final = "gateway"
"""What the gateway's container is called."""
IN_HUGE_PAGES: Final = {"PYTHONMALLOC": "malloc", "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"}
"""Variables that have objects in huge pages, where the kernel has them for who asks.

While 10,000 requests wait, each is served from memory that nobody has touched for seconds, and to find it in pages of
4 KiB took a quarter of the processor time: 450 to 530 us for a request, and 350 to 420 with these (three pairs). With
few requests it makes no difference.
"""
LINGER_SECONDS: Final = 30
"""How long a gateway that was told to end may still be sent requests, before it drains."""
_MARGIN_SECONDS: Final = 15
_LOST_NODE_SECONDS: Final = 10

_TLS_DIRECTORY: Final = "/etc/fairpool/tls"
_LOST_NODE: Final = [
    {
        "key": f"node.kubernetes.io/{state}",
        "operator": "Exists",
        "effect": "NoExecute",
        "tolerationSeconds": _LOST_NODE_SECONDS,
    }
    for state in ("not-ready", "unreachable")
]
_Mount = tuple[str, str, str, tuple[str, ...]]
"""A volume's name, its directory, its Secret, and which keys of it."""


def deployment(pool: FairPool, settings: Settings) -> Object:
    """The gateway."""
    template = pool.spec.gateway.pod_template
    spec = {
        "replicas": 1,
        "revisionHistoryLimit": 2,
        "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}},
        "selector": {"matchLabels": chosen_by(pool)},
        "template": {"metadata": _pod_metadata(pool, template), "spec": _pod(pool, settings)},
    }
    return named("apps/v1", "Deployment", pool, spec=spec)


def _pod_metadata(pool: FairPool, template: PodTemplate) -> dict[str, Any]:
    metadata: dict[str, Any] = {"labels": {**template.labels, **labels_of(pool)}}
    if template.annotations:
        metadata["annotations"] = dict(template.annotations)
    return metadata


def _pod(pool: FairPool, settings: Settings) -> dict[str, Any]:
    template, mounts = pool.spec.gateway.pod_template, _mounts(pool)
    pod: dict[str, Any] = {
        "serviceAccountName": object_name("ServiceAccount", pool.metadata.name),
        "automountServiceAccountToken": True,
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": _drain_seconds(pool) + LINGER_SECONDS + _MARGIN_SECONDS,
        "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
        "tolerations": [*_LOST_NODE, *(plain(each) for each in template.tolerations)],
        "containers": [_container(pool, settings, mounts)],
    }
    if mounts:
        pod["volumes"] = [_volume(mount) for mount in mounts]
    if template.node_selector:
        pod["nodeSelector"] = dict(template.node_selector)
    if template.affinity is not None and (affinity := plain(template.affinity)):
        pod["affinity"] = affinity
    if template.priority_class_name:
        pod["priorityClassName"] = template.priority_class_name
    if template.image_pull_secrets:
        pod["imagePullSecrets"] = [
            {"name": name} for name in sorted({each.name for each in template.image_pull_secrets})
        ]
    return pod


def _container(pool: FairPool, settings: Settings, mounts: list[_Mount]) -> dict[str, Any]:
    container: dict[str, Any] = {
        "name": CONTAINER,
        "image": settings.gateway_image,
        "command": ["fairpool-gateway"],
        "args": _arguments(pool),
        "env": [
            {"name": "POD_NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
            {"name": "POD_UID", "valueFrom": {"fieldRef": {"fieldPath": "metadata.uid"}}},
            *({"name": name, "value": value} for name, value in IN_HUGE_PAGES.items()),
        ],
        "ports": [
            {"name": SERVING, "containerPort": PORT, "protocol": "TCP"},
            {"name": ADMIN, "containerPort": ADMIN_PORT, "protocol": "TCP"},
        ],
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
        "startupProbe": _probe("/healthz", periodSeconds=1, failureThreshold=60),
        "livenessProbe": _probe("/healthz", periodSeconds=10, timeoutSeconds=5, failureThreshold=6),
        "readinessProbe": _probe("/readyz", periodSeconds=5, timeoutSeconds=5),
    }
    if settings.image_pull_policy is not None:
        container["imagePullPolicy"] = settings.image_pull_policy
    if resources := _resources(pool.spec.gateway.resources):
        container["resources"] = resources
    if mounts:
        container["volumeMounts"] = [
            {"name": name, "mountPath": directory, "readOnly": True} for name, directory, _, _ in mounts
        ]
    return container


def _arguments(pool: FairPool) -> list[str]:
    name = pool.metadata.name
    arguments = {
        "--pool": name,
        "--namespace": pool.metadata.namespace,
        "--config-secret": object_name("Secret", name),
        "--host": "::",
        "--port": str(PORT),
        "--admin-host": "::",
        "--admin-port": str(ADMIN_PORT),
        "--drain-seconds": str(_drain_seconds(pool)),
        "--log-format": "json",
    }
    if pool.spec.gateway.tls is not None:
        arguments["--tls-certificate"] = f"{_TLS_DIRECTORY}/{TLS_CERTIFICATE}"
        arguments["--tls-key"] = f"{_TLS_DIRECTORY}/{TLS_KEY}"
    return [*(text for pair in arguments.items() for text in pair), "--in-pod"]


def _drain_seconds(pool: FairPool) -> int:
    return math.ceil(pool.spec.gateway.drain_timeout)


def _probe(path: str, **fields: int) -> dict[str, Any]:
    return {"httpGet": {"path": path, "port": ADMIN}, **fields}


def _resources(resources: GatewayResources) -> dict[str, dict[str, str]]:
    amounts = {"requests": plain(resources.requests), "limits": plain(resources.limits)}
    return {
        kind: {resource: str(amount) for resource, amount in each.items()} for kind, each in amounts.items() if each
    }


def _mounts(pool: FairPool) -> list[_Mount]:
    """The Secrets that the gateway reads as files, which follow edits by themselves."""
    endpoints, tls = pool.spec.endpoints, pool.spec.gateway.tls
    mounts: list[_Mount] = []
    if endpoints.credential_ref is not None:
        credential = endpoints.credential_ref
        mounts.append(("engine", ENGINE_DIRECTORY, credential.name, (credential.key,)))
    if endpoints.tls is not None:
        authority = endpoints.tls.ca_certificate_ref
        mounts.append(("engine-ca", AUTHORITY_DIRECTORY, authority.name, (authority.key,)))
    if tls is not None:
        mounts.append(("tls", _TLS_DIRECTORY, tls.certificate_ref.name, (TLS_CERTIFICATE, TLS_KEY)))
    return mounts


def _volume(mount: _Mount) -> dict[str, Any]:
    name, _, secret, keys = mount
    return {"name": name, "secret": {"secretName": secret, "items": [{"key": key, "path": key} for key in keys]}}
