"""A pool of YAML files, as a simulated one: what its gateway would be told, and who of a trace could use it.

The files are read and the pool is compiled as `fairpool up` and the operator do it. Neither keys nor Secrets have to be
there: who sends a request is known here.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from fairpool_gateway.config import PoolConfig
from fairpool_lab.errors import NothingToServe
from fairpool_lab.traces import Trace
from fairpool_lab.up.endpoints import Endpoints
from fairpool_lab.up.local import decide
from fairpool_lab.up.resources import Resources
from fairpool_operator.errors import CannotStart
from fairpool_operator.manifests import read


def in_files(paths: Sequence[Path]) -> PoolConfig:
    """The one pool in these files and directories, as its gateway would be configured.

    Raises:
        NothingToServe: there is none, or it cannot be served as it is.
    """
    taken = Resources()
    try:
        problems = [f"{each.file}:{each.line}: {each.message}" for each in taken.take(read(list(paths)))]
    except CannotStart as problem:
        raise NothingToServe(str(problem)) from None
    store = taken.store()
    pools = [decide(key, taken, store, Endpoints(simulated=1), datetime.now(UTC)) for key in sorted(store.keys())]
    problems += [problem for pool in pools for problem in pool.problems]
    if problems:
        raise NothingToServe("; ".join(problems))
    configs = [pool.config for pool in pools if pool.config is not None]
    if len(configs) != 1:
        named = ", ".join(str(path) for path in paths)
        raise NothingToServe(f"{named}: has to hold one FairPool, and holds {len(configs)}")
    return configs[0]


def admitted(trace: Trace, pool: PoolConfig) -> Trace:
    """The requests of the trace whose tenants the pool knows; the others would be refused at its door."""
    if pool.authentication.type == "TrustedHeader" and pool.authentication.unknown_tenants == "Admit":
        return trace
    known = {tenant.name for tenant in pool.tenants}
    return tuple(request for request in trace if request.tenant in known)
