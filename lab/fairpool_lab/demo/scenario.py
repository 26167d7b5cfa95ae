"""What the demonstration runs: a trace, its weights, four engines that it overloads, and the pool they make up."""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from fairpool_lab import traces
from fairpool_lab.traces import Trace

ENGINES: Final = 4
SLOTS: Final = 8
"""Per engine; an engine runs as many sequences at once, so no queue builds up inside it."""

COMPRESSION: Final = 16.0
"""Seconds of the trace that pass in one: four minutes in a quarter of one."""

SPEED: Final = 2.0
"""Of the engines: about half of what the compressed trace asks for in the same time, so that queues build up."""

TOKENS_PER_EVENT: Final = 16
MODEL: Final = "sim"

ARRIVAL_ORDER: Final = "arrival order"
FAIR: Final = "fair"
MODULES: Final = {ARRIVAL_ORDER: "fairpool_lab.demo.gateway_in_arrival_order", FAIR: "fairpool_gateway"}
"""The module that runs the gateway in each order."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """One demonstration: the trace, each tenant's weight and each tenant's key."""

    trace: Trace
    weights: Mapping[str, int]
    keys: Mapping[str, str]


def scenario() -> Scenario:
    """The demonstration's own."""
    trace = traces.read(traces.EXCERPT)
    weights = traces.weights(trace)
    return Scenario(trace, weights, {tenant: f"demo-key-of-{tenant}" for tenant in weights})


def engine_command() -> list[str]:
    """How to start one engine."""
    return [
        sys.executable,
        *("-m", "fairpool_lab.engine", "--model", MODEL),
        *("--speed", str(SPEED), "--max-num-seqs", str(SLOTS), "--tokens-per-event", str(TOKENS_PER_EVENT)),
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
                {"name": tenant, "weight": weight, "keys": [{"digest": _digest(chosen.keys[tenant])}]}
                for tenant, weight in chosen.weights.items()
            ],
            "endpoints": [{"name": f"engine-{number}", "url": url} for number, url in enumerate(engines)],
            "slots": {"perEndpoint": SLOTS},
            "queue": {"timeout": "5m"},
        },
        indent=2,
    )


def _digest(key: str) -> str:
    return f"sha256:{hashlib.sha256(key.encode()).hexdigest()}"
