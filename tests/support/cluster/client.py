"""A client for tests, over the official asynchronous one: objects go in and come out as the documents they are.

Kinds are looked up at the server, so that those of a CRD which a test has just applied need nothing. Refusals are
raised as `Refused`, with the server's own words. For typed calls, hand `client.api` to the library's classes, as in
`CoreV1Api(client.api)`.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final

import aiohttp
from kubernetes.aio.client import ApiClient, Configuration
from support.cluster.access import Access

Document = dict[str, Any]

_CALL: Final = aiohttp.ClientTimeout(total=60)
_WATCH: Final = aiohttp.ClientTimeout(total=None, sock_connect=10)
APPLY: Final = "application/apply-patch+yaml"
MERGE: Final = "application/merge-patch+json"


@dataclass(frozen=True)
class Kind:
    """A kind of object, by the names that its objects give: `Kind("apps/v1", "Deployment")`."""

    api_version: str
    name: str

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> Kind:
        """That of a document."""
        return cls(document["apiVersion"], document["kind"])


NAMESPACE: Final = Kind("v1", "Namespace")
POD: Final = Kind("v1", "Pod")
SECRET: Final = Kind("v1", "Secret")
SERVICE: Final = Kind("v1", "Service")
SERVICE_ACCOUNT: Final = Kind("v1", "ServiceAccount")
CONFIG_MAP: Final = Kind("v1", "ConfigMap")
EVENT: Final = Kind("v1", "Event")
DEPLOYMENT: Final = Kind("apps/v1", "Deployment")
LEASE: Final = Kind("coordination.k8s.io/v1", "Lease")
NETWORK_POLICY: Final = Kind("networking.k8s.io/v1", "NetworkPolicy")
ROLE: Final = Kind("rbac.authorization.k8s.io/v1", "Role")
ROLE_BINDING: Final = Kind("rbac.authorization.k8s.io/v1", "RoleBinding")
CLUSTER_ROLE: Final = Kind("rbac.authorization.k8s.io/v1", "ClusterRole")
CLUSTER_ROLE_BINDING: Final = Kind("rbac.authorization.k8s.io/v1", "ClusterRoleBinding")
CRD: Final = Kind("apiextensions.k8s.io/v1", "CustomResourceDefinition")
FAIR_POOL: Final = Kind("fairpool.dev/v1alpha1", "FairPool")
TENANT_WEIGHT: Final = Kind("fairpool.dev/v1alpha1", "TenantWeight")


class Refused(Exception):
    """The server refused; `status`, `reason` and `message` are its own, such as 404, NotFound and why.

    `causes` are the fields that it names, each with what is wrong with it.
    """

    def __init__(self, status: int, reason: str, message: str, causes: Sequence[tuple[str, str]] = ()) -> None:
        super().__init__(f"{status} {reason}: {message}")
        self.status = status
        self.reason = reason
        self.message = message
        self.causes = causes


@dataclass(frozen=True)
class Resource:
    """Where a kind's objects are found."""

    api_version: str
    plural: str
    namespaced: bool
    verbs: frozenset[str]

    def path(self, namespace: str | None = None, name: str | None = None, subresource: str = "") -> str:
        """The path of one object, or of all (of a namespace)."""
        parts = ["/api" if "/" not in self.api_version else "/apis", self.api_version]
        if self.namespaced and namespace is not None:
            parts += ["namespaces", namespace]
        return "/".join([*parts, self.plural, *filter(None, (name, subresource))])


class Client:
    """`async with running_client(access) as client`; each call answers with the document the server has then."""

    def __init__(self, api: ApiClient) -> None:
        self.api = api
        self._resources: dict[Kind, Resource] = {}

    async def get(self, kind: Kind, name: str, namespace: str | None = None) -> Document:
        """One object."""
        return await self.request("GET", (await self.resource(kind)).path(namespace, name))

    async def find(self, kind: Kind, name: str, namespace: str | None = None) -> Document | None:
        """One object, or None if it is not there."""
        try:
            return await self.get(kind, name, namespace)
        except Refused as refused:
            if refused.status != 404:
                raise
            return None

    async def list(self, kind: Kind, namespace: str | None = None, **query: str) -> Sequence[Document]:
        """All objects, or those of one namespace; `labelSelector` and the like as `query`."""
        items: Sequence[Document] = (await self.listing(kind, namespace, **query))["items"]
        return items

    async def listing(self, kind: Kind, namespace: str | None = None, **query: str) -> Document:
        """The same with the version at which a watch goes on; each object names its kind, which servers leave out."""
        listing = await self.request("GET", (await self.resource(kind)).path(namespace), query=query)
        named = {"apiVersion": kind.api_version, "kind": kind.name}
        return {**listing, "items": [{**named, **item} for item in listing["items"]]}

    async def create(self, document: Document) -> Document:
        """Make an object, in the namespace that it names."""
        resource = await self.resource(Kind.of(document))
        return await self.request("POST", resource.path(_namespace(document)), document)

    async def replace(self, document: Document, subresource: str = "") -> Document:
        """Put an object in the place of what is there; refused if that has changed since it was read."""
        return await self.request("PUT", await self._path(document, subresource), document)

    async def apply(self, document: Document, subresource: str = "", manager: str = "tests") -> Document:
        """Apply on the server, by force."""
        query = {"fieldManager": manager, "force": "true"}
        path = await self._path(document, subresource)
        return await self.request("PATCH", path, document, query=query, content_type=APPLY)

    async def patch(
        self, kind: Kind, name: str, namespace: str | None, change: Document, subresource: str = ""
    ) -> Document:
        """Change some fields (a merge patch: None takes one away)."""
        path = (await self.resource(kind)).path(namespace, name, subresource)
        return await self.request("PATCH", path, change, content_type=MERGE)

    async def delete(self, kind: Kind, name: str, namespace: str | None = None, **options: Any) -> None:
        """Have one object deleted; `propagationPolicy`, `gracePeriodSeconds` and the like as `options`."""
        path = (await self.resource(kind)).path(namespace, name)
        await self.request("DELETE", path, options or None)

    @asynccontextmanager
    async def watch(
        self, kind: Kind, namespace: str | None = None, version: str = "", **query: str
    ) -> AsyncIterator[AsyncIterator[Document]]:
        """Events (`type` and `object`) from a version on, until the server ends the watch or the block does."""
        path = (await self.resource(kind)).path(namespace)
        query = {"watch": "1", "resourceVersion": version, **query}
        response = await self._call("GET", path, query=query, timeout=_WATCH)
        try:
            yield _events(response)
        finally:
            response.close()

    async def request(
        self,
        method: str,
        path: str,
        body: Document | None = None,
        *,
        query: Mapping[str, str] | None = None,
        content_type: str = "application/json",
        accept: str = "application/json",
    ) -> Document:
        """Any request; answers with the document that came.

        Raises:
            Refused: the server says no.
        """
        types = {"Content-Type": content_type, "Accept": accept}
        response = await self._call(method, path, body, query=query, headers=types)
        document: Document = json.loads(await response.read())
        return document

    async def resource(self, kind: Kind) -> Resource:
        """Where a kind's objects are, as the server says."""
        if kind not in self._resources:
            for name, resource in await self._served(kind.api_version):
                self._resources[Kind(kind.api_version, name)] = resource
        if kind not in self._resources:
            raise Refused(404, "NotFound", f"the server has no {kind.name} in {kind.api_version}")
        return self._resources[kind]

    async def _served(self, version: str) -> Sequence[tuple[str, Resource]]:
        served = await self.request("GET", f"/apis/{version}" if "/" in version else f"/api/{version}")
        return [
            (entry["kind"], Resource(version, entry["name"], entry["namespaced"], frozenset(entry["verbs"])))
            for entry in served["resources"]
            if "/" not in entry["name"]
        ]

    async def _path(self, document: Document, subresource: str) -> str:
        resource = await self.resource(Kind.of(document))
        return resource.path(_namespace(document), document["metadata"]["name"], subresource)

    async def _call(
        self,
        method: str,
        path: str,
        body: Document | None = None,
        *,
        query: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        timeout: aiohttp.ClientTimeout = _CALL,  # noqa: ASYNC109 - the library's own, and it covers the connection only
    ) -> aiohttp.ClientResponse:
        parts = await self.api.param_serialize(
            method,
            path,
            query_params=list((query or {}).items()),
            header_params=dict(headers or {}),
            body=body,
            auth_settings=["BearerToken"],
        )
        answer = await self.api.call_api(*parts, _request_timeout=timeout)
        response: aiohttp.ClientResponse = answer.response
        if response.status >= 400:
            raise _refused(response.status, await response.read())
        return response


@asynccontextmanager
async def running_client(access: Access) -> AsyncIterator[Client]:
    """A client of that server as that user, for the block."""
    configuration = Configuration(
        host=access.url,
        api_key={"BearerToken": access.token},
        api_key_prefix={"BearerToken": "Bearer"},
        ca_cert_data=access.authority.decode(),
        client_session_kwargs={"trust_env": False},
    )
    async with ApiClient(configuration) as api:
        yield Client(api)


async def _events(response: aiohttp.ClientResponse) -> AsyncIterator[Document]:
    async for line in response.content:
        event = json.loads(line)
        if event["type"] == "ERROR":
            said = event["object"]
            raise Refused(said["code"], said["reason"], said["message"])
        yield event


def _refused(status: int, body: bytes) -> Refused:
    try:
        said = json.loads(body)
    except ValueError:
        said = {"message": body.decode(errors="replace")}
    causes = (said.get("details") or {}).get("causes") or ()
    told = [(cause.get("field", ""), cause.get("message", "")) for cause in causes]
    return Refused(status, said.get("reason", ""), said.get("message", ""), told)


def _namespace(document: Mapping[str, Any]) -> str | None:
    namespace: str | None = document["metadata"].get("namespace")
    return namespace
