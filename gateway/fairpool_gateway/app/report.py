"""Tells the FairPool what its gateway sees, for people and for the operator.

The report is applied to the status, in a name of its own, when it has changed and at most once a second. Two gateways
may report while one takes over from the other, so each also looks from time to time whether the last word is its own;
one that leaves says nothing more. What always holds: no failure to report touches what is served, and it is logged
once; whatever pods and engines say of themselves, the API server takes the report.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import msgspec

from fairpool_gateway.app.gateway import Gateway
from fairpool_gateway.discovery import LeftOut
from fairpool_gateway.discovery.left_out import in_words
from fairpool_gateway.endpoints import Endpoint
from fairpool_gateway.errors import ClusterError

if TYPE_CHECKING:
    from fairpool_gateway.cluster.client import Cluster

log = logging.getLogger(__name__)

MANAGER: Final = "fairpool-gateway"
MOST_MODELS: Final = 64
MOST_CHARACTERS: Final = 1024
MOST_ACCELERATORS: Final = 2**31 - 1
_API: Final = "fairpool.dev/v1alpha1"
_PAUSE: Final = 1.0
_LONGEST_PAUSE: Final = 60.0
_LOOK_EVERY: Final = 30.0


class Report(msgspec.Struct, rename="camel", frozen=True):
    """What one gateway says of itself."""

    pod_uid: str = msgspec.field(name="podUID")
    config_hash: str
    endpoints_ready: int
    endpoints_total: int
    endpoints_draining: int
    accelerators: int
    models: list[str]
    left_out: str


def report_of(gateway: Gateway, pod_uid: str) -> Report:
    """What there is to say now."""
    endpoints = list(gateway.broker.dispatcher.endpoints)
    found = gateway.found
    return Report(
        pod_uid=pod_uid,
        config_hash=gateway.config_hash,
        endpoints_ready=sum(not endpoint.is_out for endpoint in endpoints),
        endpoints_total=len(endpoints) if found is None else found.total,
        endpoints_draining=sum(endpoint.spec.draining for endpoint in endpoints),
        accelerators=0 if found is None else min(found.accelerators, MOST_ACCELERATORS),
        models=list(gateway.models[:MOST_MODELS]),
        left_out=left_out(gateway),
    )


def left_out(gateway: Gateway) -> str:
    """Which pods are no endpoints and which endpoints get no slot, and why, in a bounded text."""
    unseen = "" if gateway.unseen_pods is None else f"all that the selector chooses: {gateway.unseen_pods}"
    out = [_out(each) for each in gateway.broker.dispatcher.endpoints if each.is_out]
    missing = [*out, *(() if gateway.found is None else gateway.found.left_out)]
    return "; ".join(filter(None, (unseen, in_words(missing, MOST_CHARACTERS - len(unseen) - 2))))


def _out(endpoint: Endpoint) -> LeftOut:
    """Why it gets nothing new, under what people call it: its pod, and the port."""
    name, _, address = endpoint.spec.id.partition("@")
    if endpoint.spec.draining:
        why = "draining"
    else:
        why = "ejected, to be tried again" if endpoint.wanting is None else f"that {endpoint.wanting}"
    return LeftOut(why, name, address.rpartition(":")[2])


class Reporter:
    """Reports to one FairPool what a gateway sees, which runs in the pod of that uid.

    `problem` says why that cannot be done at the moment, if so.
    """

    def __init__(self, cluster: Cluster, namespace: str, pool: str, gateway: Gateway, pod_uid: str) -> None:
        self.problem: str | None = None
        self._cluster = cluster
        self._path = f"/apis/{_API}/namespaces/{namespace}/fairpools/{pool}/status"
        self._object = {"apiVersion": _API, "kind": "FairPool", "metadata": {"name": pool, "namespace": namespace}}
        self._gateway = gateway
        self._pod_uid = pod_uid
        self._said: Report | None = None
        self._failures = 0

    async def follow(self, stop: asyncio.Event) -> None:
        """Report until told to stop."""
        loop = asyncio.get_running_loop()
        looked = loop.time()
        while not stop.is_set():
            try:
                if self._said is not None and loop.time() >= looked + _LOOK_EVERY:
                    looked = loop.time()
                    await self._see_that_it_stands()
                await self._say(report_of(self._gateway, self._pod_uid))
                self._succeed()
            except ClusterError as problem:
                self._fail(str(problem))
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(stop.wait(), self._pause())

    async def _say(self, report: Report) -> None:
        if report != self._said:
            status: Mapping[str, Any] = {"gateway": msgspec.to_builtins(report)}
            await self._cluster.apply(self._path, {**self._object, "status": status}, MANAGER)
            self._said = report

    async def _see_that_it_stands(self) -> None:
        """Whoever wrote after us, say it again."""
        status = (await self._cluster.get(self._path)).get("status") or {}
        if status.get("gateway") != msgspec.to_builtins(self._said):
            self._said = None

    def _pause(self) -> float:
        if not self._failures:
            return _PAUSE
        longest = min(_LONGEST_PAUSE, _PAUSE * 2.0 ** min(self._failures, 10))
        return longest * (0.5 + 0.5 * random.random())  # noqa: S311 - guards nothing

    def _fail(self, problem: str) -> None:
        self._failures += 1
        if self.problem is None:
            log.warning("the pool's status cannot be reported: %s", problem)
        self.problem = problem

    def _succeed(self) -> None:
        if self.problem is not None:
            log.info("the pool's status is reported again")
        self.problem = None
        self._failures = 0
