"""The Kubernetes API as the operator needs it: few verbs, plain objects, one tree of errors.

What always holds: nothing is written unless `guard` allows it at the moment of sending, when a connection has been had
already, so that a process which lost its leadership while it was frozen writes nothing any more; a request that is not
answered within its time has failed. Objects are written by server-side apply under the operator's name.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Final

import aiohttp
from kubernetes.aio.client import ApiClient, Configuration
from kubernetes.aio.config import ConfigException, load_incluster_config, load_kube_config
from yaml import YAMLError

from fairpool_operator.answers import checked
from fairpool_operator.differences import MANAGER, Pointer
from fairpool_operator.errors import (
    CannotStart,
    ClusterUnavailable,
    Conflict,
    NotNow,
    NotThere,
)
from fairpool_operator.view import Object

_LIST_SECONDS: Final = 60.0
_SERVERS_PART: Final = 0.75
"""Of the time for a write: what the API server may take, so that it still answers where a webhook does not."""
_SERVERS_PART_OF_TWO: Final = 0.4
"""The same for DELETE, which aiohttp sends a second time by itself where a connection is broken off."""
_AS_GOOD_AS: Final = 0.98
"""The part of a time that counts for all of it, by another's clock."""
_TIMEOUT: Final = "Timeout: request did not complete within the allotted timeout"
"""The words in which it answers otherwise."""
_SAYING_SECONDS: Final = 4.0
"""For a status or an Event, which nothing is to wait for."""
_PAGE: Final = 500
_JSON: Final = "application/json"
_METADATA: Final = f"{_JSON};as=PartialObjectMetadata;g=meta.k8s.io;v=v1"


_Body = Object | list[Object]
"""What is sent: an object, or the operations of a JSON patch."""


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of resource, and where the API has it."""

    api_version: str
    plural: str
    name: str
    namespaced: bool = True

    def path(self, namespace: str | None, name: str | None = None) -> str:
        """The path of one object, or of all in a namespace, or of all in the cluster."""
        parts = ["/apis" if "/" in self.api_version else "/api", self.api_version]
        if self.namespaced and namespace is not None:
            parts += ["namespaces", namespace]
        parts.append(self.plural)
        if name is not None:
            parts.append(name)
        return "/".join(parts)


FAIR_POOL: Final = Kind("fairpool.dev/v1alpha1", "fairpools", "FairPool")
TENANT_WEIGHT: Final = Kind("fairpool.dev/v1alpha1", "tenantweights", "TenantWeight")
NAMESPACE: Final = Kind("v1", "namespaces", "Namespace", namespaced=False)
SECRET: Final = Kind("v1", "secrets", "Secret")
SERVICE: Final = Kind("v1", "services", "Service")
SERVICE_ACCOUNT: Final = Kind("v1", "serviceaccounts", "ServiceAccount")
POD: Final = Kind("v1", "pods", "Pod")
DEPLOYMENT: Final = Kind("apps/v1", "deployments", "Deployment")
ROLE: Final = Kind("rbac.authorization.k8s.io/v1", "roles", "Role")
ROLE_BINDING: Final = Kind("rbac.authorization.k8s.io/v1", "rolebindings", "RoleBinding")
NETWORK_POLICY: Final = Kind("networking.k8s.io/v1", "networkpolicies", "NetworkPolicy")
LEASE: Final = Kind("coordination.k8s.io/v1", "leases", "Lease")
EVENT: Final = Kind("events.k8s.io/v1", "events", "Event")

OWNED: Final = (SERVICE_ACCOUNT, ROLE, ROLE_BINDING, SECRET, SERVICE, NETWORK_POLICY, DEPLOYMENT)
"""What the operator makes for a pool, in the order in which it is to be there."""


@dataclass(frozen=True, slots=True)
class Credentials:
    """Where the API is, and what this process shows to it."""

    server: str
    ca_path: str | None
    token: str | None = field(repr=False)
    certificate_path: str | None
    key_path: str | None


async def credentials(kubeconfig: Path | None) -> Credentials:
    """What a file says, or what a pod has, as it is now.

    Raises:
        CannotStart: as for `connect`.
    """
    found = await _configuration(kubeconfig)
    _, _, token = (found.api_key.get("BearerToken") or "").partition(" ")
    return Credentials(found.host, found.ssl_ca_cert, token or None, found.cert_file, found.key_file)


async def connect(kubeconfig: Path | None, *, guard: Callable[[], None] | None = None) -> ApiClient:
    """A client with the credentials of a file, or those that a pod has; `guard` raises where nothing may be written.

    Raises:
        CannotStart: there are none, or they cannot be read.
    """
    configuration = await _configuration(kubeconfig)
    if guard is not None:
        configuration.trace_configs = [_guarding(guard)]
    client = ApiClient(configuration)
    client.user_agent = MANAGER
    return client


async def _configuration(kubeconfig: Path | None) -> Configuration:
    configuration = Configuration()
    try:
        if kubeconfig is None:
            load_incluster_config(client_configuration=configuration)  # type: ignore[no-untyped-call]  # the library's
        else:
            await load_kube_config(  # type: ignore[no-untyped-call]  # the library's
                config_file=str(kubeconfig), client_configuration=configuration
            )
    except (ConfigException, OSError) as problem:
        where = "no kubeconfig is given and this is no pod" if kubeconfig is None else f"{kubeconfig} cannot be used"
        raise CannotStart(f"{where}: {problem}") from problem
    except (YAMLError, AttributeError, LookupError, TypeError, ValueError):
        # Without their words, which would repeat what is in the file.
        raise CannotStart(f"{kubeconfig} cannot be used: it is no kubeconfig") from None
    return configuration


def _guarding(guard: Callable[[], None]) -> aiohttp.TraceConfig:
    """Asks the guard once a write has its connection, with nothing left to wait for before it is sent."""

    async def started(_: object, request: SimpleNamespace, start: aiohttp.TraceRequestStartParams) -> None:
        request.writes = start.method not in {"GET", "HEAD"}

    async def connected(_: object, request: SimpleNamespace, __: object) -> None:
        if request.writes:
            guard()

    trace = aiohttp.TraceConfig()
    trace.on_request_start.append(started)
    trace.on_connection_reuseconn.append(connected)
    trace.on_connection_create_end.append(connected)
    return trace


class Cluster:
    """The verbs. Every method raises the errors of `checked`, beside what it names itself."""

    def __init__(self, client: ApiClient, *, seconds: float = 6.0) -> None:
        self._client = client
        self._seconds = seconds
        self.calls = 0
        self.writes = 0

    async def aclose(self) -> None:
        """Close every connection."""
        await self._client.close()  # type: ignore[no-untyped-call]  # the library's

    async def get(self, kind: Kind, namespace: str | None, name: str) -> Object | None:
        """One object; None if there is none of that name."""
        try:
            return await self._call("GET", kind.path(namespace, name))
        except NotThere:
            return None

    async def get_metadata(self, kind: Kind, namespace: str | None, name: str) -> Object | None:
        """Only the metadata of one object, so that nothing else of a stranger's is read; None if it is not there."""
        try:
            return await self._call("GET", kind.path(namespace, name), accept=_METADATA)
        except NotThere:
            return None

    async def list(self, kind: Kind, namespace: str | None = None, *, labels: str | None = None) -> list[Object]:
        """All objects of a kind, or of a namespace, that have these labels; as they are now, from no cache."""
        found: list[Object] = []
        page: str | None = ""
        while page is not None:
            query = {"limit": str(_PAGE), "labelSelector": labels, "continue": page or None}
            answer = await self._call("GET", kind.path(namespace), query=query, seconds=_LIST_SECONDS)
            found += answer.get("items") or ()
            page = (answer.get("metadata") or {}).get("continue") or None
        return found

    async def apply(self, kind: Kind, wanted: Object, *, status: bool = False, force: bool = True) -> Object:
        """Make an object's fields, or those of its status, what is wanted; other fields are left alone.

        Raises:
            Conflict: `wanted` names a version or a uid, and the object has another by now; or, where nothing is taken
                over by `force`, somebody else has set a field otherwise.
        """
        path, query = _path_of(kind, wanted, status=status), {"fieldManager": MANAGER, "force": str(force).lower()}
        seconds = min(self._seconds, _SAYING_SECONDS) if status else self._seconds
        content = "application/apply-patch+yaml"
        return await self._write("PATCH", path, wanted, query=query, content=content, seconds=seconds)

    async def merge(self, kind: Kind, patch: Object, *, status: bool = False) -> Object:
        """Put fields in the place of what is there, whole lists too, whoever set them.

        Raises:
            Conflict: the patch names a uid, and the object has another.
        """
        path, query = _path_of(kind, patch, status=status), {"fieldManager": MANAGER}
        return await self._write("PATCH", path, patch, query=query, content="application/merge-patch+json")

    async def take_out(self, kind: Kind, there: Object, pointers: Iterable[Pointer], *, status: bool = False) -> Object:
        """Remove fields of an object, in this order, from the version of it that is given.

        Raises:
            Conflict: there is a newer one.
        """
        version = {"op": "add", "path": "/metadata/resourceVersion", "value": there["metadata"]["resourceVersion"]}
        patch = [version, *({"op": "remove", "path": _written(pointer)} for pointer in pointers)]
        path, query = _path_of(kind, there, status=status), {"fieldManager": MANAGER}
        return await self._write("PATCH", path, patch, query=query, content="application/json-patch+json")

    async def create(self, kind: Kind, wanted: Object) -> Object:
        """Make an object that is not there yet.

        Raises:
            Conflict: there is one.
        """
        path = kind.path(wanted["metadata"].get("namespace"))
        seconds = min(self._seconds, _SAYING_SECONDS) if kind is EVENT else self._seconds
        return await self._write("POST", path, wanted, query={"fieldManager": MANAGER}, seconds=seconds)

    async def replace(self, kind: Kind, wanted: Object) -> Object:
        """Put an object in the place of the version that it names.

        Raises:
            Conflict: there is a newer one.
        """
        return await self._write("PUT", _path_of(kind, wanted), wanted, query={"fieldManager": MANAGER})

    async def delete(self, kind: Kind, namespace: str | None, name: str, uid: str) -> None:
        """Remove this very object; one that is gone, or of another uid, is none of ours."""
        options = {"preconditions": {"uid": uid}, "propagationPolicy": "Background"}
        try:
            await self._write("DELETE", kind.path(namespace, name), options)
        except (NotThere, Conflict):
            return

    async def _write(
        self,
        method: str,
        path: str,
        body: _Body,
        *,
        query: Mapping[str, str | None] | None = None,
        content: str = "",
        seconds: float | None = None,
    ) -> Object:
        self.writes += 1
        seconds = seconds or self._seconds
        servers = seconds * (_SERVERS_PART_OF_TWO if method == "DELETE" else _SERVERS_PART)
        query = {**(query or {}), "timeout": f"{servers:.3f}s"}
        loop = asyncio.get_running_loop()
        began = loop.time()
        try:
            return await self._call(method, path, body=body, query=query, content=content, seconds=seconds)
        except ClusterUnavailable as problem:
            # Where its time runs out the API server answers, or just as often breaks off the connection.
            broke_off = isinstance(problem.__cause__, aiohttp.ServerDisconnectedError)
            if broke_off and loop.time() - began > servers * _AS_GOOD_AS:
                raise NotNow(f"{method} {path}: {_TIMEOUT}", _TIMEOUT) from None
            raise

    async def _call(
        self,
        method: str,
        path: str,
        *,
        body: _Body | None = None,
        query: Mapping[str, str | None] | None = None,
        content: str = "",
        accept: str = _JSON,
        seconds: float | None = None,
    ) -> Object:
        self.calls += 1
        within = aiohttp.ClientTimeout(total=seconds or self._seconds)
        try:
            method, url, headers, sent, _ = await self._client.param_serialize(
                method,
                path,
                query_params=[(name, value) for name, value in (query or {}).items() if value is not None],
                header_params={"Accept": accept, "Content-Type": content or _JSON},
                body=body,
                auth_settings=["BearerToken"],
            )
            response = await self._client.call_api(method, url, headers, sent, _request_timeout=within)
            text: bytes = await response.read()  # type: ignore[no-untyped-call]  # the library's
        except (aiohttp.ClientError, ConfigException, TimeoutError, OSError) as problem:
            # A token is read again from its file before a request, and may be about to be replaced.
            raise ClusterUnavailable(f"{method} {path}: {str(problem) or type(problem).__name__}") from problem
        return checked(method, path, response.status, text)


def _written(pointer: Pointer) -> str:
    """A pointer as RFC 6901 writes it."""
    return "".join("/" + str(step).replace("~", "~0").replace("/", "~1") for step in pointer)


def _path_of(kind: Kind, resource: Object, *, status: bool = False) -> str:
    metadata = resource["metadata"]
    return kind.path(metadata.get("namespace"), metadata["name"]) + ("/status" if status else "")
