"""What ties one gateway to Kubernetes: its pods, its configuration, and the FairPool that it reports to.

The library that speaks to the API is loaded only here, and only where it is asked for: that takes half a second and
tens of megabytes, which a gateway outside Kubernetes need not spend.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from fairpool_gateway.app.gateway import Gateway
from fairpool_gateway.app.report import Reporter
from fairpool_gateway.config import PoolConfig
from fairpool_gateway.configwatch import SecretFollower
from fairpool_gateway.discovery import PodFollower
from fairpool_gateway.errors import ConfigInvalid

if TYPE_CHECKING:
    from fairpool_gateway.cluster.client import Cluster


@dataclass(frozen=True, slots=True)
class Place:
    """Where in Kubernetes a gateway is.

    Attributes:
        namespace: where its pods are, and all else that it reads.
        kubeconfig: how to reach the API server; None: as a pod does.
        pool: the FairPool that it reports to, if any.
        config_secret: the Secret with its configuration, if that is in one.
        pod_uid: which pod it is itself.
    """

    namespace: str
    kubeconfig: Path | None = None
    pool: str | None = None
    config_secret: str | None = None
    pod_uid: str = ""


class Kubernetes:
    """One gateway's place, with the API server at hand."""

    def __init__(self, place: Place, cluster: Cluster) -> None:
        self._place = place
        self._cluster = cluster
        self._secret: SecretFollower | None = None
        self._reporter: Reporter | None = None
        self.pods = PodFollower(cluster.source, place.namespace)

    def config(
        self,
        applied: Callable[[PoolConfig, str], None],
        refused: Callable[[ConfigInvalid], None],
        in_force: str | None = None,
    ) -> SecretFollower | None:
        """Follows the configuration from now on, if it is in a Secret; arguments as for `SecretFollower`."""
        place = self._place
        if place.config_secret is None:
            return None
        self._secret = SecretFollower(
            self._cluster.source,
            place.namespace,
            place.config_secret,
            applied=applied,
            refused=refused,
            in_force=in_force,
        )
        return self._secret

    def reporter(self, gateway: Gateway) -> Reporter | None:
        """Reports what this gateway sees, if there is a FairPool to report to."""
        place = self._place
        if place.pool is None:
            return None
        self._reporter = Reporter(self._cluster, place.namespace, place.pool, gateway, place.pod_uid)
        return self._reporter

    def problems(self) -> Mapping[str, str | None]:
        """Of each thing that is followed or reported, why it cannot be at the moment, if so."""
        parts = {"config": self._secret, "pods": self.pods, "status": self._reporter}
        return {name: part.problem for name, part in parts.items() if part is not None}


@contextlib.asynccontextmanager
async def connected(place: Place | None) -> AsyncIterator[Kubernetes | None]:
    """That place, as long as the block runs; None where there is none.

    Raises:
        CannotStart: there are no credentials for the API server.
    """
    if place is None:
        yield None
        return
    cluster: Cluster = await import_module("fairpool_gateway.cluster.client").connect(place.kubeconfig)
    try:
        yield Kubernetes(place, cluster)
    finally:
        await cluster.aclose()
