"""Admission that fails as it does in clusters: a webhook that is away, or does not answer, and a policy that forbids.

Each concerns one namespace, and is in force from the beginning of its context to the end, and no longer: the API server
hears of it a moment later, so something is tried until it has.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Sequence
from typing import Any, Final

from support.cluster.client import Client, Document, Kind, Refused
from support.cluster.definitions import dry_run
from support.cluster.waiting import PATIENCE

_API: Final = "admissionregistration.k8s.io/v1"
_WEBHOOKS: Final = Kind(_API, "ValidatingWebhookConfiguration")
_POLICY, _BINDING = Kind(_API, "ValidatingAdmissionPolicy"), Kind(_API, "ValidatingAdmissionPolicyBinding")
_TRIED: Final = "configmaps"
"""What nothing here needs, and what is tried."""
_LONGEST: Final = 30
"""Seconds that the API server gives a webhook at most."""


@contextlib.asynccontextmanager
async def webhook(
    admin: Client, namespace: str, resource: str, *, operations: Sequence[str] = ("*",), answers: bool = True
) -> AsyncIterator[None]:
    """While this lasts the webhook that has to be asked about writes of this resource is away, or does not answer.

    `resource` is its group and plural: `apps/deployments`, `/services`.
    """
    with socket.socket() as away, socket.create_server(("127.0.0.1", 0)) as silent:
        away.bind(("127.0.0.1", 0))
        asked = away if answers else silent
        hooks = [
            _hook("concerned", namespace, asked, _rule(resource, operations)),
            _hook("tried", namespace, away, _rule(f"/{_TRIED}", ["*"])),
        ]
        document = {"apiVersion": _API, "kind": _WEBHOOKS.name, "metadata": {"name": f"of-{namespace}"}}
        await admin.create({**document, "webhooks": hooks})
        try:
            await _in_force(admin, namespace, "failed calling webhook")
            yield
        finally:
            await admin.delete(_WEBHOOKS, f"of-{namespace}")
            await _in_force(admin, namespace, "")


@contextlib.asynccontextmanager
async def forbidden(
    admin: Client, namespace: str, resource: str, operation: str, words: str = "'not here'"
) -> AsyncIterator[None]:
    """While this lasts a policy forbids an operation, with the words that this CEL expression comes to."""
    name = f"of-{namespace}"
    rules = [_rule(resource, [operation]), _rule(f"/{_TRIED}", ["*"])]
    said = {"expression": "false", "messageExpression": words}
    policy = {"matchConstraints": {"resourceRules": rules}, "validations": [said]}
    where = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}}}
    binding = {"policyName": name, "validationActions": ["Deny"], "matchResources": where}
    for kind, spec in ((_POLICY, policy), (_BINDING, binding)):
        await admin.create({"apiVersion": _API, "kind": kind.name, "metadata": {"name": name}, "spec": spec})
    try:
        await _in_force(admin, namespace, name)
        yield
    finally:
        await admin.delete(_BINDING, name)
        await admin.delete(_POLICY, name)
        await _in_force(admin, namespace, "")


def _rule(resource: str, operations: Sequence[str]) -> Document:
    group, _, plural = resource.partition("/")
    return {"apiGroups": [group], "apiVersions": ["*"], "operations": list(operations), "resources": [plural]}


def _hook(name: str, namespace: str, asked: socket.socket, rule: Document) -> dict[str, Any]:
    return {
        "name": f"{name}.example.com",
        "clientConfig": {"url": f"https://127.0.0.1:{asked.getsockname()[1]}/"},
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
        "rules": [rule],
        "timeoutSeconds": _LONGEST,
        "failurePolicy": "Fail",
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
    }


async def _in_force(admin: Client, namespace: str, words: str) -> None:
    """Wait until it is refused with these words; none: until nothing is refused any more."""
    tried = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "tried", "namespace": namespace}}
    async with asyncio.timeout(PATIENCE):
        while True:
            try:
                await dry_run(admin, tried)
            except Refused as refused:
                if words and words in refused.message:
                    return
            else:
                if not words:
                    return
