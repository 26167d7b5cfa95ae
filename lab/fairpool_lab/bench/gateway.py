"""`make bench`: requests per second through the gateway against the same endpoint reached directly.

The endpoint stand-in is nginx, which answers every request with the same chat answer of about 600 bytes, so that the
gateway is what is measured. The gateway runs with everything on: keys of 100 tenants, order, usage reading, metrics.
It has one core, wrk and nginx the other. Rounds are interleaved, direct then gateway, and medians are printed.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import re
import shutil
import socket
import statistics
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rich import box
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from fairpool_lab.demo.processes import running
from fairpool_lab.errors import LabError, ToolMissing

TENANTS = 100
CONNECTIONS = (1, 64, 256)
ROUNDS = 3
SECONDS = 4
GATEWAY_CORE, LOAD_CORE = "0", "1"

_GATEWAY_SAYS = re.compile(r"to tenants on http://127\.0\.0\.1:(\d+)")
_ANSWER = {
    "id": "chatcmpl-bench",
    "object": "chat.completion",
    "created": 0,
    "model": "sim",
    "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "fair " * 80}}],
    "usage": {"prompt_tokens": 250, "completion_tokens": 80, "total_tokens": 330},
}
_QUESTION = {"model": "sim", "messages": [{"role": "user", "content": "fair " * 190}], "max_tokens": 100}


@dataclass(frozen=True, slots=True)
class Load:
    """What wrk saw in one round."""

    requests_per_second: float
    p50_ms: float
    p99_ms: float
    errors: int


def main() -> int:
    """Measure and print; returns the exit status, 1 if any request failed."""
    console = Console()
    try:
        with tempfile.TemporaryDirectory() as directory:
            loads = asyncio.run(_measure(Path(directory), console))
    except LabError as error:
        console.print(f"bench: {error}", style="red")
        return 2
    console.print(_table(loads))
    return 1 if any(load.errors for rounds in loads.values() for load in rounds) else 0


async def _measure(directory: Path, console: Console) -> dict[tuple[str, int], list[Load]]:
    for tool in ("nginx", "wrk", "taskset"):
        if shutil.which(tool) is None:
            raise ToolMissing(f"{tool} is needed: apt-get install nginx-light wrk util-linux")
    port = _free_port()
    (directory / "nginx.conf").write_text(_nginx(directory, port), encoding="utf-8")
    (directory / "pool.json").write_text(json.dumps(_pool(port)), encoding="utf-8")
    (directory / "load.lua").write_text(_lua(), encoding="utf-8")
    loads: dict[tuple[str, int], list[Load]] = {}
    async with contextlib.AsyncExitStack() as stack:
        await stack.enter_async_context(
            running(
                [*_pinned(LOAD_CORE), "nginx", "-c", str(directory / "nginx.conf")],
                announces=re.compile("start worker process"),
                output=directory / "nginx.log",
            )
        )
        gateway = await stack.enter_async_context(
            running(
                [
                    *_pinned(GATEWAY_CORE),
                    *(sys.executable, "-m", "fairpool_gateway", "--config", str(directory / "pool.json")),
                    *("--port", "0", "--admin-port", "0"),
                ],
                announces=_GATEWAY_SAYS,
                output=directory / "gateway.log",
            )
        )
        targets = {"direct": port, "gateway": int(gateway[1])}
        with Progress(console=console) as progress:
            bar = progress.add_task("rounds", total=ROUNDS * len(CONNECTIONS) * len(targets))
            for _ in range(ROUNDS):
                for connections in CONNECTIONS:
                    for name, target in targets.items():
                        load = await _wrk(directory, target, connections)
                        loads.setdefault((name, connections), []).append(load)
                        progress.advance(bar)
    return loads


async def _wrk(directory: Path, port: int, connections: int) -> Load:
    child = await asyncio.create_subprocess_exec(
        *_pinned(LOAD_CORE),
        *("wrk", "-t1", f"-c{connections}", f"-d{SECONDS}s", "--latency", "-s", str(directory / "load.lua")),
        f"http://127.0.0.1:{port}/v1/chat/completions",
        stdout=asyncio.subprocess.PIPE,
    )
    said, _ = await child.communicate()
    figures = json.loads(said.decode().rsplit("JSON ", 1)[1])
    return Load(**figures)


def _table(loads: dict[tuple[str, int], list[Load]]) -> Table:
    shown = Table(box=box.SIMPLE_HEAD, title="Medians of interleaved rounds, least to greatest in brackets")
    for column in ("connections", "direct, req/s", "gateway, req/s", "gateway / direct", "gateway p50", "gateway p99"):
        shown.add_column(column, justify="right")
    for connections in CONNECTIONS:
        direct, gateway = loads["direct", connections], loads["gateway", connections]
        ratios = [
            through.requests_per_second / to.requests_per_second for through, to in zip(gateway, direct, strict=True)
        ]
        shown.add_row(
            str(connections),
            _spread([load.requests_per_second for load in direct], "{:,.0f}"),
            _spread([load.requests_per_second for load in gateway], "{:,.0f}"),
            _spread(ratios, "{:.3f}"),
            f"{statistics.median(load.p50_ms for load in gateway):.2f} ms",
            f"{statistics.median(load.p99_ms for load in gateway):.2f} ms",
        )
    return shown


def _spread(values: Sequence[float], form: str) -> str:
    least, greatest = form.format(min(values)), form.format(max(values))
    return f"{form.format(statistics.median(values))} [{least} to {greatest}]"


def _pinned(core: str) -> list[str]:
    return ["taskset", "--cpu-list", core]


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
        return port


def _key(tenant: int) -> str:
    return f"bench-key-of-tenant-{tenant}"


def _pool(port: int) -> dict[str, object]:
    return {
        "pool": "bench",
        "models": ["sim"],
        "tenants": [
            {
                "name": f"tenant-{tenant}",
                "weight": 1 + tenant % 10,
                "keys": [{"digest": f"sha256:{hashlib.sha256(_key(tenant).encode()).hexdigest()}"}],
            }
            for tenant in range(TENANTS)
        ],
        "endpoints": [{"name": "stand-in", "url": f"http://127.0.0.1:{port}"}],
        "slots": {"perEndpoint": 1000},
    }


def _lua() -> str:
    """Requests of all tenants in turn; the summary as JSON behind the word JSON."""
    return f"""
local body = [[{json.dumps(_QUESTION)}]]
local requests, turn = {{}}, 0
function init(args)
  for tenant = 0, {TENANTS - 1} do
    requests[tenant] = wrk.format("POST", wrk.path, {{
      ["content-type"] = "application/json", ["authorization"] = "Bearer {_key(0)[:-1]}" .. tenant }}, body)
  end
end
function request()
  turn = (turn + 1) % {TENANTS}
  return requests[turn]
end
function done(summary, latency, _)
  local failed = summary.errors.connect + summary.errors.read + summary.errors.write
    + summary.errors.status + summary.errors.timeout
  io.write(string.format('JSON {{"requests_per_second": %f, "p50_ms": %f, "p99_ms": %f, "errors": %d}}',
    summary.requests / summary.duration * 1e6, latency:percentile(50) / 1000, latency:percentile(99) / 1000, failed))
end
"""


def _nginx(directory: Path, port: int) -> str:
    return f"""
daemon off;
worker_processes 1;
pid {directory}/nginx.pid;
error_log stderr notice;
events {{ worker_connections 4096; }}
http {{
  access_log off;
  keepalive_requests 1000000000;
  client_body_temp_path {directory}/body;
  proxy_temp_path {directory}/proxy;
  fastcgi_temp_path {directory}/fastcgi;
  uwsgi_temp_path {directory}/uwsgi;
  scgi_temp_path {directory}/scgi;
  server {{
    listen 127.0.0.1:{port} backlog=4096;
    default_type application/json;
    location / {{ return 200 '{json.dumps(_ANSWER)}'; }}
  }}
}}
"""


if __name__ == "__main__":
    sys.exit(main())
