"""`make bench`: requests per second through the gateway against the same endpoint reached directly.

The endpoint stand-in is nginx, which answers every request with the same chat answer of about 600 bytes, so that the
gateway is what is measured. The gateway runs with everything on: keys of 100 tenants, order, usage reading, metrics.
It has one core, wrk and nginx the other. Rounds are interleaved, direct then gateway, and medians are printed.

A request has failed if its connection broke, if its status was none of success, or if the gateway itself counts it as
anything but answered. That an answer was late is no failure: others may keep both cores busy too.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import re
import shutil
import socket
import statistics
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import httpx
from rich import box
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from fairpool_lab.errors import Interrupted, LabError, MachineLacks, ProcessFailed
from fairpool_lab.processes import Program, run, running

TENANTS = 100
CONNECTIONS = (1, 64, 256)
ROUNDS = 3
SECONDS = 4

NGINX_SAYS = re.compile(r"start worker process \d+")
_GATEWAY_SAYS = re.compile(r"to tenants on http://127\.0\.0\.1:(\d+), admin on (\S+)")
_OUTCOME = re.compile(r'^fairpool_outcomes_total\{reason="(\w+)",tenant="[^"]*"\} (\S+)$', re.MULTILINE)
_EXPECTED = ("answered", "tenant_gone")
"""At the end of a round wrk leaves, whatever is under way."""
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
    """What wrk saw in one round.

    `errors` by its kinds, those that did not occur left out; `late`: how often it had waited for 2 s, its time-out.
    """

    requests_per_second: float
    p50_ms: float
    p99_ms: float
    errors: dict[str, int]
    late: int = 0


Loads = dict[tuple[str, int], list[Load]]
"""By `direct` or `gateway` and the number of connections, one load for each round."""


def main() -> int:
    """Measure and print; returns the exit status, 1 if any request failed."""
    console = Console()
    try:
        with tempfile.TemporaryDirectory() as directory:
            loads, outcomes = run(_measure(Path(directory), console))
    except Interrupted as error:
        return error.status
    except LabError as error:
        console.print(f"bench: {error}", style="red", markup=False)
        return 2
    console.print(table(loads))
    if late := sum(load.late for rounds in loads.values() for load in rounds):
        console.print(f"{late} answers took longer than 2 s: this machine has other things to do", style="yellow")
    failed = failures(loads, outcomes)
    for line in failed:
        console.print(f"requests failed: {line}", style="red", markup=False)
    return 1 if failed else 0


def failures(loads: Loads, outcomes: Mapping[str, int]) -> list[str]:
    """What failed, a line for each round in which anything did, and one for what the gateway says of itself."""
    failed = [
        f"{name} at {connections} connections, round {number}: {load.errors}"
        for (name, connections), rounds in loads.items()
        for number, load in enumerate(rounds, 1)
        if load.errors
    ]
    unexpected = {reason: number for reason, number in outcomes.items() if reason not in _EXPECTED}
    return [*failed, f"the gateway counts {unexpected}"] if unexpected else failed


async def _measure(directory: Path, console: Console) -> tuple[Loads, dict[str, int]]:
    gateway_core, load_core = _cores()
    port = _free_port()
    (directory / "nginx.conf").write_text(nginx_config(directory, port), encoding="utf-8")
    (directory / "pool.json").write_text(json.dumps(_pool(port)), encoding="utf-8")
    (directory / "load.lua").write_text(_lua(), encoding="utf-8")
    wrk = [*pinned(load_core), _tool("wrk"), "-t1", f"-d{SECONDS}s", "--latency", "-s", str(directory / "load.lua")]
    loads: Loads = {}
    async with running(
        Program(
            "nginx",
            [*pinned(load_core), _tool("nginx"), "-c", str(directory / "nginx.conf")],
            announces=NGINX_SAYS,
            output=directory / "nginx.log",
        ),
        Program(
            "the gateway",
            [
                *pinned(gateway_core),
                *(sys.executable, "-m", "fairpool_gateway", "--config", str(directory / "pool.json")),
                *("--port", "0", "--admin-port", "0"),
            ],
            announces=_GATEWAY_SAYS,
            output=directory / "gateway.log",
        ),
    ) as (_, gateway):
        targets = {"direct": port, "gateway": int(gateway[1])}
        with Progress(console=console) as progress:
            bar = progress.add_task("rounds", total=ROUNDS * len(CONNECTIONS) * len(targets))
            for _ in range(ROUNDS):
                for connections in CONNECTIONS:
                    for name, target in targets.items():
                        load = await _load([*wrk, f"-c{connections}"], target)
                        loads.setdefault((name, connections), []).append(load)
                        progress.advance(bar)
        async with httpx.AsyncClient(base_url=gateway[2], timeout=60) as admin:
            return loads, outcomes_in((await admin.get("/metrics")).text)


def outcomes_in(metrics: str) -> dict[str, int]:
    """How requests ended, by reason, of all tenants together."""
    outcomes: dict[str, int] = {}
    for reason, number in _OUTCOME.findall(metrics):
        outcomes[reason] = outcomes.get(reason, 0) + int(float(number))
    return outcomes


async def _load(wrk: Sequence[str], port: int) -> Load:
    child = await asyncio.create_subprocess_exec(
        *wrk, f"http://127.0.0.1:{port}/v1/chat/completions", stdout=asyncio.subprocess.PIPE
    )
    try:
        said, _ = await child.communicate()
    finally:
        if child.returncode is None:
            child.kill()
            await child.wait()
    if child.returncode:
        raise ProcessFailed(f"wrk ended with status {child.returncode}")
    figures = json.loads(said.decode().rsplit("JSON ", 1)[1])
    late = figures["errors"].pop("timeout")
    figures["errors"] = {kind: number for kind, number in figures["errors"].items() if number}
    return Load(**figures, late=late)


def table(loads: Loads) -> Table:
    """Of each figure the median, the least and the greatest of the rounds; fits 80 columns."""
    shown = Table(box=box.SIMPLE_HEAD, title="Interleaved rounds", title_justify="left")
    for column in (
        "connec-\ntions",
        "",
        "direct,\nreq/s",
        "gateway,\nreq/s",
        "gateway /\ndirect",
        "gateway\np50, ms",
        "gateway\np99, ms",
    ):
        shown.add_column(column, justify="right", no_wrap=True)
    for connections in CONNECTIONS:
        direct, gateway = loads["direct", connections], loads["gateway", connections]
        rounds = zip(gateway, direct, strict=True)
        figures = (
            ("{:,.0f}", [load.requests_per_second for load in direct]),
            ("{:,.0f}", [load.requests_per_second for load in gateway]),
            ("{:.3f}", [through.requests_per_second / to.requests_per_second for through, to in rounds]),
            ("{:.2f}", [load.p50_ms for load in gateway]),
            ("{:.2f}", [load.p99_ms for load in gateway]),
        )
        for name, of in (("median", statistics.median), ("least", min), ("greatest", max)):
            first = str(connections) if of is statistics.median else ""
            cells = (form.format(of(values)) for form, values in figures)
            shown.add_row(first, name, *cells, style="bold" if first else "dim", end_section=of is max)
    return shown


def pinned(core: int) -> list[str]:
    """What goes before a command that may use one core only."""
    return [_tool("taskset"), "--cpu-list", str(core)]


def _cores() -> tuple[int, int]:
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) < 2:
        raise MachineLacks("two cores are needed: one for the gateway, one for what surrounds it")
    return cores[0], cores[1]


def _tool(name: str) -> str:
    found = shutil.which(name, path=os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/sbin", "/sbin"]))
    if found is None:
        raise MachineLacks(f"{name} is needed: apt-get install nginx-light wrk util-linux")
    return found


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
  local errors = summary.errors
  io.write(string.format('JSON {{"requests_per_second": %f, "p50_ms": %f, "p99_ms": %f, "errors": '
    .. '{{"connect": %d, "read": %d, "write": %d, "status": %d, "timeout": %d}}}}',
    summary.requests / summary.duration * 1e6, latency:percentile(50) / 1000, latency:percentile(99) / 1000,
    errors.connect, errors.read, errors.write, errors.status, errors.timeout))
end
"""


def nginx_config(directory: Path, port: int) -> str:
    """The endpoint stand-in, in the foreground, with everything it writes in one directory."""
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
