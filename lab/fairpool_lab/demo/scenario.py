"""What the demonstration runs: a trace, its weights, engines that it overloads, and the pool that they make up."""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from fairpool_lab import traces
from fairpool_lab.traces import Trace

TOKENS_PER_EVENT: Final = 16
MODEL: Final = "sim"

ARRIVAL_ORDER: Final = "arrival order"
FAIR: Final = "fair"
MODULES: Final = {ARRIVAL_ORDER: "fairpool_lab.demo.gateway_in_arrival_order", FAIR: "fairpool_gateway"}
"""The module that runs the gateway in each order."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """One demonstration.

    Attributes:
        trace: what is asked for.
        weights: each tenant's weight.
        compression: seconds of the trace that pass in one; by default four minutes in a quarter of one.
        speed: of the engines; by default they do about half of what the compressed trace asks for in the same time,
            so that queues build up.
        engines: how many there are.
        slots: per engine; an engine runs as many sequences at once, so no queue builds up inside it.
    """

    trace: Trace
    weights: Mapping[str, int]
    compression: float = 16.0
    speed: float = 2.0
    engines: int = 4
    slots: int = 8

    @property
    def keys(self) -> dict[str, str]:
        """Each tenant's key."""
        return {tenant: f"demo-key-of-{tenant}" for tenant in self.weights}


def of_trace(trace: Trace) -> Scenario:
    """The demonstration of a trace, with weights by `traces.WEIGHT_RULE`."""
    return Scenario(trace, traces.weights(trace))


def engine_command(chosen: Scenario) -> list[str]:
    """How to start one engine."""
    return [
        sys.executable,
        *("-m", "fairpool_lab.engine", "--model", MODEL),
        *("--speed", str(chosen.speed), "--max-num-seqs", str(chosen.slots)),
        *("--tokens-per-event", str(TOKENS_PER_EVENT)),
    ]


def gateway_command(order: str, config: str, decision_log: str) -> list[str]:
    """How to start the gateway, on ports that the kernel chooses."""
    return [
        sys.executable,
        *("-m", MODULES[order], "--config", config, "--decision-log", decision_log),
        *("--port", "0", "--admin-port", "0"),
    ]


def pool_config(chosen: Scenario, engines: Sequence[str]) -> str:
    """The gateway's configuration file for these engines, which hold all that comes in the queue."""
    return json.dumps(
        {
            "pool": "demo",
            "models": [MODEL],
            "tenants": [
                {"name": tenant, "weight": chosen.weights[tenant], "keys": [{"digest": _digest(key)}]}
                for tenant, key in chosen.keys.items()
            ],
            "endpoints": [{"name": f"engine-{number}", "url": url} for number, url in enumerate(engines)],
            "slots": {"perEndpoint": chosen.slots},
            "queue": {"timeout": "5m"},
        },
        indent=2,
    )


def _digest(key: str) -> str:
    return f"sha256:{hashlib.sha256(key.encode()).hexdigest()}"
