"""Where a crowd meets a gateway: the gateway, an endpoint and a neighbour, each as a process of its own on loopback."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import re
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import httpx

from fairpool_gateway.config import PoolConfig
from fairpool_lab.crowds import endpoint, neighbour
from fairpool_lab.processes import Program, running

TENANTS: Final = 20
"""Those of the crowd, `crowd-0` and so on, beside the neighbour."""

_GATEWAY_SAYS: Final = re.compile(r"to tenants on https?://127\.0\.0\.1:(\d+), admin on http://127\.0\.0\.1:(\d+)")
_ENDPOINT_SAYS: Final = re.compile(rf"^{endpoint.SAYS}(\S+)")
_NEIGHBOUR_SAYS: Final = re.compile(neighbour.SAYS)
_SAMPLE: Final = re.compile(r"^(fairpool_\w+)(?:\{[^}]*\})? (\S+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What a gateway holds at one moment: memory as the kernel counts it, the rest by its own metrics."""

    rss: int
    descriptors: int
    connections: int
    tasks: int
    waiting: int
    in_flight: int
    held: int
    buffered: int


class Stage:
    """A running gateway with what surrounds it."""

    def __init__(self, config: PoolConfig, pid: int, port: int, admin_port: int, answers: Path, log: Path) -> None:
        self.config = config
        self.port = port
        self.admin_port = admin_port
        self._process = Path("/proc") / str(pid)
        self._answers = answers
        self._log = log
        self._admin = httpx.AsyncClient(base_url=f"http://127.0.0.1:{admin_port}", timeout=30)

    def answers(self, since: float, until: float) -> list[neighbour.Answer]:
        """What the neighbour was answered, of what it asked in a time; by the clock that all processes share."""
        return [answer for answer in neighbour.read(self._answers) if since <= answer.asked < until]

    def log(self) -> str:
        """What the gateway has said so far."""
        return self._log.read_text(encoding="utf-8")

    def rss(self) -> int:
        """Bytes of memory that the gateway has now."""
        return self._status("VmRSS")

    def peak(self) -> int:
        """The most that it has had since `forget_peak`."""
        return self._status("VmHWM")

    def forget_peak(self) -> None:
        """Count the peak from now on."""
        (self._process / "clear_refs").write_text("5", encoding="utf-8")

    def descriptors(self) -> int:
        """How many descriptors it has open."""
        return sum(1 for _ in (self._process / "fd").iterdir())

    def cpu_seconds(self) -> float:
        """How long it has worked so far."""
        fields = (self._process / "stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / 100

    async def metrics(self) -> dict[str, float]:
        """Its metrics, each summed over its labels."""
        found: dict[str, float] = {}
        for name, value in _SAMPLE.findall((await self._admin.get("/metrics")).text):
            found[name] = found.get(name, 0) + float(value)
        return found

    async def until(self, condition: Callable[[dict[str, float]], bool]) -> None:
        """Wait until its metrics say so."""
        while not condition(await self.metrics()):  # noqa: ASYNC110 - another process has it
            await asyncio.sleep(0.05)

    async def snapshot(self) -> Snapshot:
        """What it holds now."""
        metrics = await self.metrics()
        return Snapshot(
            rss=self.rss(),
            descriptors=self.descriptors(),
            connections=int(metrics["fairpool_connections"]),
            tasks=int(metrics["fairpool_tasks"]),
            waiting=int(metrics["fairpool_waiting_requests"]),
            in_flight=int(metrics["fairpool_in_flight_requests"]),
            held=int(metrics["fairpool_held_bytes"]),
            buffered=int(metrics["fairpool_buffered_bytes"]),
        )

    async def aclose(self) -> None:
        """Let go of the admin port."""
        await self._admin.aclose()

    def _status(self, field: str) -> int:
        text = (self._process / "status").read_text(encoding="utf-8")
        return int(text.partition(f"{field}:")[2].split()[0]) << 10


def key_of(tenant: str) -> str:
    """A tenant's key."""
    return f"key-of-{tenant}"


def request(tenant: str, body: bytes, *headers: str, framing: str | None = None) -> bytes:
    """One POST as it goes over the wire, with a length unless another framing is given."""
    lines = [
        *("POST /v1/chat/completions HTTP/1.1", "host: pool", f"authorization: Bearer {key_of(tenant)}"),
        framing or f"content-length: {len(body)}",
        *headers,
    ]
    return "\r\n".join([*lines, "", ""]).encode() + body


@contextlib.asynccontextmanager
async def staged(
    directory: Path,
    fields: Mapping[str, Any] | None = None,
    *,
    descriptors: int | None = None,
    tls: tuple[Path, Path] | None = None,
) -> AsyncIterator[Stage]:
    """A stage whose files are in `directory`; `fields` replace those of its pool.

    Args:
        directory: for configuration and logs.
        fields: of the configuration, as its file has them.
        descriptors: what the system allows the gateway, if not what it allows here.
        tls: the gateway's certificate and key. There is no neighbour then.
    """
    serves = Program(
        "the endpoint", [sys.executable, "-m", endpoint.__name__], _ENDPOINT_SAYS, directory / "endpoint.log"
    )
    async with running(serves) as (listens,):
        document = _document(listens[1], dict(fields or {}))
        path, log, answers = (directory / name for name in ("pool.json", "gateway.log", "neighbour.log"))
        path.write_text(json.dumps(document), encoding="utf-8")
        command = [sys.executable, "-m", "fairpool_gateway", "--config", str(path), "--port", "0", "--admin-port", "0"]
        if tls is not None:
            command += ["--tls-certificate", str(tls[0]), "--tls-key", str(tls[1])]
        limit = "" if descriptors is None else f"ulimit -n {descriptors}; "
        gateway = Program(
            "the gateway", ["sh", "-c", f'echo process $$; {limit}exec "$@"', "sh", *command], _GATEWAY_SAYS, log
        )
        async with running(gateway) as (says,):
            port, admin_port = (int(number) for number in says.groups())
            pid = int(log.read_text(encoding="utf-8").split(maxsplit=2)[1])
            asks = Program(
                "the neighbour",
                [sys.executable, "-m", neighbour.__name__, str(port), key_of("neighbour")],
                _NEIGHBOUR_SAYS,
                answers,
            )
            stage = Stage(PoolConfig.model_validate(document), pid, port, admin_port, answers, log)
            async with contextlib.AsyncExitStack() as around:
                around.push_async_callback(stage.aclose)
                if tls is None:
                    await around.enter_async_context(running(asks))
                yield stage


def _document(url: str, fields: dict[str, Any]) -> dict[str, Any]:
    names = ["neighbour", *(f"crowd-{number}" for number in range(TENANTS))]
    return {
        "pool": "crowded",
        "models": ["sim"],
        "endpoints": [{"name": "endpoint", "url": url}],
        # The crowd and the endpoint are on the same cores as the gateway: that one of them has to wait is no fault.
        "timeouts": {"connect": "30s"},
        "probe": {"interval": "60s", "timeout": "30s"},
        "tenants": [
            {"name": name, "weight": 1000 if name == "neighbour" else 100, "keys": [{"digest": _digest(key_of(name))}]}
            for name in names
        ],
        **fields,
    }


def _digest(key: str) -> str:
    return f"sha256:{hashlib.sha256(key.encode()).hexdigest()}"
