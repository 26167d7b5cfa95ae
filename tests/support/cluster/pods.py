"""Pods without a node: the test writes their status, and simulated engines answer at their addresses.

They name no node, or the pod garbage collector would delete them within a minute for a node that is not there. Each has
an address of its own out of 127.0.0.0/8, or is given the only one that IPv6 has here, ::1; and all use one port, as the
pods of a Deployment do.
"""

from __future__ import annotations

import itertools
import socket
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, Final

from support.cluster.client import POD, Client, Document
from support.engine import running_engine

from fairpool_lab.engine.server import Engine

GPU: Final = "nvidia.com/gpu"
LABELS: Final = {"app": "vllm"}


class FakePods:
    """The pods of one namespace, and the engines behind them."""

    def __init__(self, client: Client, namespace: str, stack: AsyncExitStack) -> None:
        self.engines: dict[str, Engine] = {}
        self._client = client
        self._namespace = namespace
        self._stack = stack
        self._stops: dict[str, AsyncExitStack] = {}
        self._addresses: Iterator[str] = (f"127.0.{a}.{b}" for a, b in itertools.product(range(256), range(2, 255)))
        has_both = socket.has_dualstack_ipv6()
        holder = stack.enter_context(socket.socket(socket.AF_INET6 if has_both else socket.AF_INET))
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if has_both:
            holder.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        holder.bind(("::" if has_both else "0.0.0.0", 0))
        self.port: int = holder.getsockname()[1]
        """The port of all pods, which nobody else gets on any address: its holder does not listen."""

    async def add(
        self,
        name: str,
        *,
        address: str | None = None,
        ready: bool = True,
        phase: str = "Running",
        gpus: int = 1,
        resource: str = GPU,
        labels: Mapping[str, str] = LABELS,
        spec: Mapping[str, Any] | None = None,
    ) -> Document:
        """Make a pod with this status; nothing listens at its address. An empty `address` is one that has none yet."""
        requests = {resource: str(gpus)} if gpus else {}
        container = {
            "name": "engine",
            "image": "engine",
            "ports": [{"name": "http", "containerPort": self.port}],
            "resources": {"requests": requests, "limits": requests},
        }
        metadata = {"name": name, "namespace": self._namespace, "labels": dict(labels)}
        full_spec = {"containers": [container], "terminationGracePeriodSeconds": 0, **(spec or {})}
        await self._client.create({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": full_spec})
        address = self.new_address() if address is None else address
        return await self.status(name, address=address, ready=ready, phase=phase)

    async def serve(self, name: str, *models: str, engine: Mapping[str, Any] | None = None, **pod: Any) -> Engine:
        """Make a pod behind whose address an engine answers; `engine` and `pod` go to `running_engine` and `add`."""
        address = pod.pop("address", None) or self.new_address()
        stop = await self._stack.enter_async_context(AsyncExitStack())
        running = running_engine(*models, host=address, port=self.port, **(engine or {}))
        self.engines[name] = await stop.enter_async_context(running)
        self._stops[name] = stop
        await self.add(name, address=address, **pod)
        return self.engines[name]

    async def stop_engine(self, name: str) -> None:
        """Nothing listens at the pod's address any longer; the server has not heard of it."""
        del self.engines[name]
        await self._stops.pop(name).aclose()

    async def status(
        self, name: str, *, address: str | None = None, ready: bool | None = None, phase: str | None = None
    ) -> Document:
        """Write some of a pod's status, as its kubelet would."""
        status: Document = {}
        if phase is not None:
            status["phase"] = phase
        if address is not None:
            status["podIP"] = address or None
            status["podIPs"] = [{"ip": address}] if address else None
        if ready is not None:
            said = "True" if ready else "False"
            types = ("PodScheduled", "Initialized", "ContainersReady", "Ready")
            status["conditions"] = [{"type": t, "status": said if "eady" in t else "True"} for t in types]
        return await self._client.patch(POD, name, self._namespace, {"status": status}, "status")

    async def label(self, name: str, labels: Mapping[str, str | None]) -> Document:
        """Set labels, or take away those that are None."""
        return await self._client.patch(POD, name, self._namespace, {"metadata": {"labels": dict(labels)}})

    async def delete(self, name: str) -> None:
        """It is gone at once; an engine behind it goes on, as processes do for a while."""
        await self._client.delete(POD, name, self._namespace, gracePeriodSeconds=0)

    async def start_deleting(self, name: str) -> Document:
        """It is being deleted, and stays until `finish_deleting`."""
        held = {"metadata": {"finalizers": ["example.com/held"]}}
        await self._client.patch(POD, name, self._namespace, held)
        await self._client.delete(POD, name, self._namespace)
        return await self._client.get(POD, name, self._namespace)

    async def finish_deleting(self, name: str) -> None:
        """End what `start_deleting` began."""
        await self._client.patch(POD, name, self._namespace, {"metadata": {"finalizers": None}})

    def new_address(self) -> str:
        """One that no other pod of these has had."""
        return next(self._addresses)


@asynccontextmanager
async def fake_pods(client: Client, namespace: str) -> AsyncIterator[FakePods]:
    """Pods for a namespace; their engines end with the block, and the pods with the namespace."""
    async with AsyncExitStack() as stack:
        yield FakePods(client, namespace, stack)
