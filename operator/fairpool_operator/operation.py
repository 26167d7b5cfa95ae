"""The process: everything put together, led by a Lease, ended in order.

What always holds: of all the processes at most one writes; a pool that cannot be reconciled delays no other; what was
not to be written for want of leadership is looked at again as soon as that is had; on SIGTERM what is being reconciled
is finished, then the Lease is given up, so that another need not wait until it ends.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
import socket
from collections.abc import Iterable, Iterator
from typing import Final

import uvicorn

from fairpool_operator.cluster import Cluster, connect
from fairpool_operator.compile import Settings
from fairpool_operator.errors import CannotStart, NotLeading, OperatorError
from fairpool_operator.handlers import Watches
from fairpool_operator.health import health_routes
from fairpool_operator.knowledge import Knowledge
from fairpool_operator.lease import Leadership
from fairpool_operator.metrics import Gauges, Tally
from fairpool_operator.options import Options
from fairpool_operator.reconcile import Reconciler
from fairpool_operator.store import Store
from fairpool_operator.view import PoolKey
from fairpool_operator.workqueue import WorkQueue

log = logging.getLogger(__name__)

LEASE_NAME: Final = "fairpool-operator"
_FINISH_SECONDS: Final = 5.0
"""What reconciles in progress may take to finish at the end."""


async def operate(options: Options) -> None:
    """Operate until SIGTERM or SIGINT.

    Raises:
        CannotStart: the port or the credentials cannot be had.
    """
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    elections = Cluster(await connect(options.kubeconfig), seconds=options.lease_seconds / 4)
    leadership = Leadership(
        elections, options.own_namespace, LEASE_NAME, options.identity, duration=options.lease_seconds
    )
    # What is sent in the last moment of a lease has to end in the third of it that nobody else takes it in.
    seconds = min(6.0, options.lease_seconds * 0.4)
    cluster = Cluster(await connect(options.kubeconfig, guard=leadership.guard), seconds=seconds)
    try:
        await _Operation(options, cluster, elections, leadership).run(stop)
    finally:
        await leadership.release()
        await cluster.aclose()
        await elections.aclose()
    log.info("ended")


class _Operation:
    def __init__(self, options: Options, cluster: Cluster, elections: Cluster, leadership: Leadership) -> None:
        self._options = options
        self._cluster = cluster
        self._elections = elections
        self._leadership = leadership
        self._store = Store()
        self._queue = WorkQueue[PoolKey](options.workers)
        self._tally = Tally()
        self._owed: set[PoolKey] = set()
        self._reconciler = Reconciler(
            cluster,
            self._store,
            Settings(options.gateway_image, options.image_pull_policy, frozenset(options.namespaces)),
            self._look_at,
            self._queue.is_due,
            identity=options.identity,
        )
        self._knowledge = Knowledge(
            self._store,
            cluster,
            self._look_at,
            self._tally,
            namespaces=options.namespaces,
            every=options.list_seconds,
        )
        self._watches = Watches(
            self._knowledge.followed,
            self._knowledge.heard,
            kubeconfig=options.kubeconfig,
            namespaces=options.namespaces,
        )

    async def run(self, stop: asyncio.Event) -> None:
        options = self._options
        with _listen(options.host, options.port) as port:
            address, number = port.getsockname()[:2]
            host = f"[{address}]" if ":" in address else address
            log.info("operator of %s, health on http://%s:%d", self._where(), host, number)
            server = _Server(
                uvicorn.Config(
                    health_routes(self._tally, self._gauges), lifespan="off", log_config=None, access_log=False
                )
            )
            async with asyncio.TaskGroup() as tasks:
                background = [
                    tasks.create_task(self._knowledge.run()),
                    tasks.create_task(self._follow()),
                    tasks.create_task(self._leadership.campaign(self._renewed)),
                ]
                workers = [tasks.create_task(self._work()) for _ in range(options.workers)]
                serving = tasks.create_task(server.serve(sockets=[port]))
                await stop.wait()
                log.info("leaving")
                self._queue.close()
                await asyncio.wait(workers, timeout=_FINISH_SECONDS)
                for task in (*workers, *background):
                    task.cancel()
                server.should_exit = True
                await serving

    def _where(self) -> str:
        return "all namespaces" if not self._options.namespaces else ", ".join(self._options.namespaces)

    def _renewed(self, anew: bool) -> None:
        owed, self._owed = self._owed, set()
        self._look_at(self._store.keys() if anew else owed)

    def _look_at(self, keys: Iterable[PoolKey]) -> None:
        """Nothing is looked at before everything has been listed once; then everything is."""
        for key in filter(self._knowledge.is_enough_for, keys):
            self._queue.add(key)

    async def _follow(self) -> None:
        await self._knowledge.synced.wait()
        self._look_at(self._store.keys())
        await self._watches.run(self._knowledge.doubt)

    async def _work(self) -> None:
        while (key := await self._queue.take()) is not None:
            await self._look(key)

    async def _look(self, key: PoolKey) -> None:
        began = asyncio.get_running_loop().time()
        failed, result = False, "done"
        self._owed.discard(key)
        try:
            if self._store.has(key):  # Of any other nothing is written; what was remembered of it is forgotten.
                self._leadership.guard()
            again = await self._reconciler.reconcile(key)
            if again is not None:
                self._queue.add(key, after=again)
        except NotLeading:
            result = "not_leading"
            self._owed.add(key)
        except OperatorError as problem:
            failed, result = True, "failed"
            log.warning("pool %s, trying again: %s", key, problem)
        except Exception:
            failed, result = True, "failed"
            log.exception("pool %s, trying again", key)
        finally:
            self._queue.done(key, failed=failed)
        self._tally.reconciles[result] += 1
        self._tally.seconds += asyncio.get_running_loop().time() - began

    def _gauges(self) -> Gauges:
        pools, weights = self._store.counts()
        unready_pools, unready_weights = self._store.unready()
        return Gauges(
            leading=self._leadership.held,
            synced=self._knowledge.synced.is_set(),
            waiting=len(self._queue),
            pools=pools,
            tenant_weights=weights,
            unready_pools=unready_pools,
            unready_tenant_weights=unready_weights,
            calls=self._cluster.calls + self._elections.calls,
            writes=self._cluster.writes,
            watch_restarts=self._watches.restarts,
        )


class _Server(uvicorn.Server):
    """A uvicorn server that leaves signals to the process it runs in."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Capture none."""
        yield


def _listen(host: str, port: int) -> socket.socket:
    """A listening socket; `::` is every address, those of IPv4 too, and those alone where there is no IPv6."""
    dual = host == "::" and socket.has_dualstack_ipv6()
    if host == "::" and not dual:
        host = "0.0.0.0"
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, dualstack_ipv6=dual)
    except OSError as error:
        raise CannotStart(f"cannot listen on {host} port {port}: {error.strerror}") from error
