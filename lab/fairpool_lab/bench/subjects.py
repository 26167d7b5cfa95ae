"""What is measured: something in front of the endpoint, first of all the gateway.

The gateway runs with everything on: keys of all tenants, order, usage reading, metrics; and as in its pod.
"""

from __future__ import annotations

import hashlib
import json
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from fairpool_operator.compile.objects.deployment import IN_HUGE_PAGES

DIRECT: Final = "direct"
"""Nothing in front: the load reaches the endpoint itself. It shows what load and endpoint can do."""

TENANTS: Final = 100
MANY_TENANTS: Final = 5_000
FEW_SLOTS: Final = 200

IN_A_POD: Final = tuple(f"{name}={value}" for name, value in IN_HUGE_PAGES.items())
"""What the operator sets for a gateway, so that what is measured is what runs there."""

_ANYTHING = re.compile("")


@dataclass(frozen=True, slots=True)
class Place:
    """Where one is started: its directory, the endpoint's port, and two ports that it may listen on."""

    directory: Path
    endpoint: int
    port: int
    admin: int


@dataclass(frozen=True, slots=True)
class Subject:
    """One of them.

    Attributes:
        name: what tables call it.
        about: what it is.
        program: has it on this machine, installed now if need be; raises a LabError if it cannot be had.
        command: how it is started, from the program; writes what files it needs.
        announces: matches a line of its output once it starts to serve.
        version: the arguments with which the program tells its version, where `about` does not.
    """

    name: str
    about: str
    program: Callable[[], Path]
    command: Callable[[Path, Place], Sequence[str]]
    announces: re.Pattern[str] = _ANYTHING
    version: tuple[str, ...] = ()


def key_of(tenant: int) -> str:
    """A tenant's key."""
    return f"bench-key-of-tenant-{tenant}"


def _gateway(*, tenants: int, slots: int) -> Callable[[Path, Place], Sequence[str]]:
    def command(python: Path, place: Place) -> Sequence[str]:
        path = place.directory / "pool.json"
        path.write_text(json.dumps(pool(place.endpoint, tenants=tenants, slots=slots)), encoding="utf-8")
        ports = ("--port", str(place.port), "--admin-port", str(place.admin))
        return ["env", *IN_A_POD, str(python), "-m", "fairpool_gateway", "--config", str(path), *ports]

    return command


def pool(endpoint: int, *, tenants: int, slots: int) -> dict[str, object]:
    """The gateway's configuration; so much may wait that nothing is refused."""
    return {
        "pool": "bench",
        "models": ["sim"],
        "tenants": [
            {
                "name": f"tenant-{tenant}",
                "weight": 1 + tenant % 10,
                "keys": [{"digest": f"sha256:{hashlib.sha256(key_of(tenant).encode()).hexdigest()}"}],
            }
            for tenant in range(tenants)
        ],
        "endpoints": [{"name": "endpoint", "url": f"http://127.0.0.1:{endpoint}"}],
        "slots": {"perEndpoint": slots},
        "queue": {"maxRequests": 20_000, "perTenant": {"maxRequests": 20_000}},
        "timeouts": {"connect": "30s"},
    }


_GATEWAY_SAYS = re.compile(r"to tenants on http://127\.0\.0\.1:\d+")

GATEWAY: Final = Subject(
    "fairpool",
    f"this project's gateway with {TENANTS} tenants",
    lambda: Path(sys.executable),
    _gateway(tenants=TENANTS, slots=1000),
    _GATEWAY_SAYS,
)
CROWDED: Final = Subject(
    "crowded",
    f"the same with {MANY_TENANTS:,} tenants and no more than {FEW_SLOTS} slots",
    GATEWAY.program,
    _gateway(tenants=MANY_TENANTS, slots=FEW_SLOTS),
    _GATEWAY_SAYS,
)
