"""A cluster as small as one pool: what is put into it is decided upon, and what is decided can be written into it."""

from __future__ import annotations

import copy
from datetime import UTC, datetime
from typing import Any

from support.resources import rolled_out
from support.server_side_apply import applied

from fairpool_operator.compile import Changes, Compiled, Settings, changes, compile_pool
from fairpool_operator.store import Store
from fairpool_operator.view import PoolKey, View

LLAMA = PoolKey("inference", "llama")
NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)
SETTINGS = Settings(gateway_image="registry.example/fairpool:1")


class SmallCluster:
    """Resources of any kind, the newest of each name, and what the operator makes of one pool."""

    def __init__(self, *resources: Any, settings: Settings = SETTINGS, key: PoolKey = LLAMA) -> None:
        self.store = Store()
        self.settings = settings
        self.key = key
        self.there: dict[tuple[str, str], Any] = {}
        self._version = 10_000
        self.put(*resources)

    def put(self, *resources: Any) -> None:
        """Add or change resources."""
        for each in resources:
            self._version += 1
            made = copy.deepcopy(each)
            made["metadata"]["resourceVersion"] = str(self._version)
            self.there[each["kind"], _name(each)] = made
            self.store.put(each["kind"], made)

    def remove(self, kind: str, name: str) -> None:
        """Remove a resource; `name` may begin with its namespace."""
        gone = self.there.pop((kind, name if "/" in name else f"{self.key.namespace}/{name}"))
        self.store.remove(kind, gone)

    def get(self, kind: str, name: str) -> Any:
        """A copy of a resource, to be edited and put again."""
        return copy.deepcopy(self.there[kind, name if "/" in name else f"{self.key.namespace}/{name}"])

    @property
    def view(self) -> View:
        """What a decision looks at."""
        return self.store.view(self.key)

    def compiled(self, now: datetime = NOW) -> Compiled:
        """The decision."""
        return compile_pool(self.view, self.settings, now)

    def changes(self, now: datetime = NOW) -> Changes:
        """What is to be written."""
        return changes(self.compiled(now), self.view)

    def settle(self, now: datetime = NOW) -> Changes:
        """Write all that is to be written, and say what it was."""
        written = self.changes(now)
        for apply in written.applies:
            there = self.there.get((apply.wanted["kind"], _name(apply.wanted)))
            self.put(applied(apply.wanted, there))
        for removal in written.removals:
            self.remove(removal.kind, removal.name)
        self.say(written)
        return written

    def say(self, written: Changes) -> None:
        """Write only the statuses that are to be written."""
        for said in (*written.tenant_statuses, *([written.pool_status] if written.pool_status else [])):
            body = said.body()
            there = self.get(body["kind"], _name(body))
            gateway = {"gateway": there["status"]["gateway"]} if "gateway" in (there.get("status") or {}) else {}
            self.put({**there, "status": {**body["status"], **gateway}})

    def serve(self, *, ready: int = 2, total: int = 2, pod: str = "gateway-1", **report: Any) -> None:
        """Have the gateway's Deployment be rolled out, and one of its pods use the newest configuration."""
        deployment = self.get("Deployment", f"{self.key.name}-fairpool")
        deployment["status"] = {**rolled_out(deployment), "conditions": [{"type": "Available", "status": "True"}]}
        pool = self.get("FairPool", self.key.name)
        found = {
            "podUID": f"uid-of-inference-{pod}",
            "endpointsReady": ready,
            "endpointsTotal": total,
            "accelerators": ready,
        }
        newest = {"configHash": self.compiled().config_hash}
        pool["status"] = {**pool.get("status", {}), "gateway": {**found, **newest, **report}}
        self.put(deployment, pool)


def _name(resource: Any) -> str:
    metadata = resource["metadata"]
    return f"{metadata.get('namespace', '')}/{metadata['name']}"


def states(said: Any) -> dict[str, tuple[str, str]]:
    """The status and the reason of each condition."""
    return {each.type: (each.status, each.reason) for each in said.status.conditions}


def message(said: Any, type_: str) -> str:
    """What a condition says."""
    return next(each.message for each in said.status.conditions if each.type == type_)
