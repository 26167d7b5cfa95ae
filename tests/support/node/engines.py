"""Simulated engines as a Deployment whose pods ask for a GPU each, and what they say that they have computed."""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from typing import Any, Final

import httpx
from support.cluster.client import POD, Client, Document
from support.node.images import ENGINE

NAME: Final = "engine"
LABELS: Final = {"app": NAME}
PORT: Final = 8000
MODEL: Final = "sim"

FINISHING_SECONDS: Final = 10
"""A pod that is told to end does so after this: what it runs is finished by then, and no more is sent to it."""

_RESTRICTED: Final = {
    "allowPrivilegeEscalation": False,
    "readOnlyRootFilesystem": True,
    "capabilities": {"drop": ["ALL"]},
}


def engines(namespace: str, replicas: int, *arguments: str) -> Document:
    """The Deployment. The engines' answers take as long as `arguments` say, as in `--step-base 0.01`."""
    container: dict[str, Any] = {
        "name": NAME,
        "image": ENGINE,
        "args": ["--model", MODEL, *arguments],
        "ports": [{"containerPort": PORT}],
        "readinessProbe": {"httpGet": {"path": "/health", "port": PORT}, "periodSeconds": 1},
        "lifecycle": {"preStop": {"sleep": {"seconds": FINISHING_SECONDS}}},
        "resources": {"requests": {"cpu": "100m"}, "limits": {"nvidia.com/gpu": 1}},
        "securityContext": _RESTRICTED,
    }
    pod = {
        "automountServiceAccountToken": False,
        "terminationGracePeriodSeconds": 3 * FINISHING_SECONDS,
        "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
        "containers": [container],
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": NAME, "namespace": namespace},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": LABELS},
            "strategy": {"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}},
            "template": {"metadata": {"labels": LABELS}, "spec": pod},
        },
    }


async def running(admin: Client, namespace: str) -> list[Document]:
    """The engines' pods that serve, the oldest first."""
    pods = await admin.list(POD, namespace, labelSelector=f"app={NAME}")
    alive = [pod for pod in pods if "deletionTimestamp" not in pod["metadata"] and _is_ready(pod)]
    return sorted(alive, key=lambda pod: str(pod["metadata"]["creationTimestamp"]))


async def tokens(admin: Client, namespace: str) -> dict[str, Counter[str]]:
    """What the engines that serve have computed so far, by label: requests, prompt and generation."""
    totals: dict[str, Counter[str]] = defaultdict(Counter)
    for said in await asyncio.gather(*map(tokens_of, await running(admin, namespace))):
        for label, counts in said.items():
            totals[label].update(counts)
    return totals


async def tokens_of(pod: Document) -> dict[str, dict[str, int]]:
    """The same of one engine."""
    async with httpx.AsyncClient(trust_env=False) as http:
        said = await http.get(f"http://{pod['status']['podIP']}:{PORT}/debug/tokens")
    counted: dict[str, dict[str, int]] = said.raise_for_status().json()
    return counted


def _is_ready(pod: Document) -> bool:
    conditions = pod["status"].get("conditions", ())
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)
