"""What the demonstration runs: a trace, engines that it overloads, and the pool that they make up.

The pool and its tenants are resources, read and compiled as `fairpool up` does it, and so as on a cluster.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from fairpool_gateway.config import EndpointSettings, PoolConfig, dump
from fairpool_lab.errors import NothingToServe
from fairpool_lab.processes import Program
from fairpool_lab.traces import Trace
from fairpool_lab.up import programs
from fairpool_lab.up.endpoints import Endpoints
from fairpool_lab.up.local import Local, configured, decide
from fairpool_lab.up.programs import LOOPBACK, Ports
from fairpool_lab.up.resources import Resources
from fairpool_operator.errors import CannotStart
from fairpool_operator.manifests import read

POOL: Final = Path(__file__).parent / "pool"
"""The resources: one pool, and a tenant for each client of the trace."""

TOKENS_PER_EVENT: Final = 16

ARRIVAL_ORDER: Final = "arrival order"
FAIR: Final = "fair"
MODULES: Final = {ARRIVAL_ORDER: "fairpool_lab.demo.gateway_in_arrival_order", FAIR: "fairpool_gateway"}
"""The module that runs the gateway in each order."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """One demonstration.

    Attributes:
        trace: what is asked for.
        pool: the pool, as it was decided about it.
        compression: seconds of the trace that pass in one; by default four minutes in a quarter of one.
        speed: of the engines; by default they do about half of what the compressed trace asks for in the same time,
            so that queues build up.
        engines: how many there are. Each runs as many sequences at once as it has slots, so no queue builds up in it.
    """

    trace: Trace
    pool: Local
    compression: float = 16.0
    speed: float = 2.0
    engines: int = 4

    @property
    def config(self) -> PoolConfig:
        """The pool's configuration, as a cluster would have it."""
        assert self.pool.config is not None, "a scenario is made of a pool that can be served"
        return self.pool.config

    @property
    def model(self) -> str:
        """What to ask for."""
        return self.config.models[0]

    @property
    def weights(self) -> Mapping[str, int]:
        """The weight of each tenant that asks for something."""
        asking = {request.tenant for request in self.trace}
        return {tenant: weight for tenant, weight in self.config.weights().items() if tenant in asking}

    @property
    def keys(self) -> Mapping[str, str]:
        """Each tenant's key."""
        return {tenant.name: tenant.key for tenant in self.pool.tenants if tenant.key is not None}


def of_trace(trace: Trace, resources: Path = POOL) -> Scenario:
    """The demonstration of a trace, with the one pool and the tenants that are there.

    Raises:
        NothingToServe: it cannot be served as it is.
    """
    taken = Resources()
    try:
        problems = [f"{each.file}:{each.line}: {each.message}" for each in taken.take(read([resources]))]
    except CannotStart as problem:
        raise NothingToServe(str(problem)) from None
    store = taken.store()
    keys, now = sorted(store.keys()), datetime.now(UTC)
    pools = [decide(key, taken, store, Endpoints(simulated=1), now) for key in keys]
    for pool in pools:
        problems += [*pool.problems, *(problem for tenant in pool.tenants for problem in tenant.problems)]
    if problems or len(pools) != 1 or not pools[0].config or not pools[0].config.models:
        told = "; ".join(problems) or "it has to hold one FairPool, with a model and with tenants that have keys"
        raise NothingToServe(f"{resources}: {told}")
    return Scenario(trace, pools[0])


def engine(chosen: Scenario, number: int, out: Path) -> Program:
    """One engine."""
    return programs.engine(
        f"engine-{number}",
        [chosen.model],
        out / f"engine-{number}.log",
        *("--speed", str(chosen.speed), "--max-num-seqs", str(chosen.config.slots.per_endpoint)),
        *("--tokens-per-event", str(TOKENS_PER_EVENT)),
    )


def gateway(order: str, config: Path, decision_log: Path, output: Path) -> Program:
    """The gateway in one order, on ports that the kernel chooses."""
    name = f"the gateway in {order}" if order == ARRIVAL_ORDER else f"the {order} gateway"
    arguments = ("--decision-log", str(decision_log))
    return programs.gateway(name, config, Ports(LOOPBACK, 0, 0), output, *arguments, module=MODULES[order])


def pool_config(chosen: Scenario, engines: Sequence[str], directory: Path) -> str:
    """The gateway's configuration file, in that directory, for these engines."""
    endpoints = [EndpointSettings(name=f"engine-{number}", url=url) for number, url in enumerate(engines)]
    return dump(configured(chosen.config, endpoints, directory))
