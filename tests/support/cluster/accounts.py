"""ServiceAccounts with their own roles and nothing else, so that a program under test shows what it needs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, Final

from support.cluster.access import Access
from support.cluster.client import (
    CLUSTER_ROLE,
    CLUSTER_ROLE_BINDING,
    ROLE,
    ROLE_BINDING,
    SERVICE_ACCOUNT,
    Client,
    Document,
    Kind,
)

Rule = Mapping[str, Any]
"""As in a Role: apiGroups, resources, verbs and perhaps resourceNames."""

_PATIENCE: Final = 20.0


async def token(client: Client, namespace: str, account: str, seconds: int = 3600) -> str:
    """A token for a ServiceAccount, as a kubelet gets it (TokenRequest)."""
    path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token"
    asked = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": seconds}}
    issued: str = (await client.request("POST", path, asked))["status"]["token"]
    return issued


@asynccontextmanager
async def new_account(
    client: Client,
    access: Access,
    namespace: str,
    name: str,
    *,
    rules: Sequence[Rule] = (),
    cluster_rules: Sequence[Rule] = (),
) -> AsyncIterator[Access]:
    """A ServiceAccount that may do this in its namespace, and that everywhere; yields its access to the server.

    Its rights are in force from the start. What it has outside of its namespace is removed when the block ends.
    """
    subject = {"kind": SERVICE_ACCOUNT.name, "name": name, "namespace": namespace}
    await client.apply({**_named(SERVICE_ACCOUNT), "metadata": {"name": name, "namespace": namespace}})
    async with AsyncExitStack() as stack:
        for kinds, granted, where in (
            ((ROLE, ROLE_BINDING), rules, {"name": name, "namespace": namespace}),
            ((CLUSTER_ROLE, CLUSTER_ROLE_BINDING), cluster_rules, {"name": f"{namespace}-{name}"}),
        ):
            if not granted:
                continue
            role, binding = kinds
            await client.apply({**_named(role), "metadata": where, "rules": [dict(rule) for rule in granted]})
            reference = {"apiGroup": role.api_version.split("/")[0], "kind": role.name, "name": where["name"]}
            await client.apply({**_named(binding), "metadata": where, "roleRef": reference, "subjects": [subject]})
            if "namespace" not in where:
                for kind in kinds:
                    stack.push_async_callback(client.delete, kind, where["name"])
        await _in_force(client, namespace, name, rules, cluster_rules)
        yield access.as_user(await token(client, namespace, name))


async def may(client: Client, namespace: str, account: str, verb: str, /, **attributes: str) -> bool:
    """Whether an account may do something: `may(admin, ns, "gateway", "get", resource="secrets", namespace=ns)`."""
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "spec": {
            "user": f"system:serviceaccount:{namespace}:{account}",
            "groups": ["system:serviceaccounts", f"system:serviceaccounts:{namespace}", "system:authenticated"],
            "resourceAttributes": {"verb": verb, **attributes},
        },
    }
    answer = await client.request("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", review)
    allowed: bool = answer["status"]["allowed"]
    return allowed


async def _in_force(
    client: Client, namespace: str, account: str, rules: Iterable[Rule], cluster_rules: Iterable[Rule]
) -> None:
    """Wait until the server acts by these rules, which it learns of a little later than it admits them."""
    wanted = [(rule, {"namespace": namespace}) for rule in rules]
    wanted += [(rule, {}) for rule in cluster_rules if "resources" in rule]
    async with asyncio.timeout(_PATIENCE):
        for rule, where in wanted:
            while not await may(client, namespace, account, rule["verbs"][0], **_attributes(rule), **where):
                pass


def _attributes(rule: Rule) -> dict[str, str]:
    resource, _, subresource = rule["resources"][0].partition("/")
    attributes = {"group": rule["apiGroups"][0], "resource": resource}
    if subresource:
        attributes["subresource"] = subresource
    if names := rule.get("resourceNames"):
        attributes["name"] = names[0]
    return attributes


def _named(kind: Kind) -> Document:
    return {"apiVersion": kind.api_version, "kind": kind.name}
