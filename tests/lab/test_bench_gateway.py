"""The gateway's benchmark: its table can be read on any terminal, and its nginx ends when it is told to."""

from __future__ import annotations

import io
import os
import shutil

import pytest
from rich.console import Console
from support.gateway import running_gateway
from support.processes import descendants, held
from support.tenant import pool_over

from fairpool_lab import processes
from fairpool_lab.bench import gateway
from fairpool_lab.bench.gateway import CONNECTIONS, Load, table
from fairpool_lab.processes import Program, running

TOOLS = all(shutil.which(tool, path=f"{os.environ['PATH']}:/usr/sbin") for tool in ("nginx", "taskset"))


def loads(direct: float, through: float) -> gateway.Loads:
    return {
        (name, connections): [Load(rate + 1000 * number, 10.0 + number, 1000.0 + number, {}) for number in range(3)]
        for name, rate in (("direct", direct), ("gateway", through))
        for connections in CONNECTIONS
    }


def test_the_table_fits_80_columns_without_a_figure_cut_short():
    said = io.StringIO()
    Console(file=said, width=80).print(table(loads(1_170_000, 117_000)))
    assert "…" not in said.getvalue()
    lines = said.getvalue().splitlines()
    for connections in CONNECTIONS:
        row = next(number for number, line in enumerate(lines) if line.split()[:1] == [str(connections)])
        assert lines[row].split() == [str(connections), "median", "1,171,000", "118,000", "0.101", "11.00", "1001.00"]
        assert lines[row + 1].split() == ["least", "1,170,000", "117,000", "0.100", "10.00", "1000.00"]
        assert lines[row + 2].split() == ["greatest", "1,172,000", "119,000", "0.102", "12.00", "1002.00"]


def test_what_failed_is_named_by_kind_and_round_and_what_was_late_has_not_failed():
    answered = {"answered": 100, "tenant_gone": 3}
    measured = loads(2, 1)
    measured["gateway", 64][1] = Load(1.0, 1.0, 1.0, {}, late=7)
    assert gateway.failures(measured, answered) == []
    measured["gateway", 64][1] = Load(1.0, 1.0, 1.0, {"read": 2}, late=7)
    assert gateway.failures(measured, {**answered, "upstream_failed": 2}) == [
        "gateway at 64 connections, round 2: {'read': 2}",
        "the gateway counts {'upstream_failed': 2}",
    ]


async def test_what_the_gateway_counts_is_read_from_its_metrics():
    async with running_gateway(pool_over()) as running:
        for name, reason in (("a", "answered"), ("b", "answered"), ("c", "queue_full")):
            running.gateway.tally_of(name).outcomes[reason] += 2
        assert gateway.outcomes_in((await running.admin("/metrics")).text) == {"answered": 4, "queue_full": 2}


def test_what_the_machine_lacks_is_said_before_anything_starts(monkeypatch, capsys):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0})
    assert gateway.main() == 2
    assert "two cores are needed" in capsys.readouterr().out
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})
    monkeypatch.setattr(shutil, "which", lambda *_, **__: None)
    assert gateway.main() == 2
    assert "apt-get install" in capsys.readouterr().out


@pytest.mark.skipif(not TOOLS, reason="needs nginx and taskset")
async def test_nginx_pinned_to_a_core_ends_with_its_workers_without_being_killed(tmp_path, monkeypatch):
    killed = []
    monkeypatch.setattr(processes.os, "killpg", lambda *arguments: killed.append(arguments))
    (tmp_path / "nginx.conf").write_text(gateway.nginx_config(tmp_path, gateway._free_port()))
    command = [
        *gateway.pinned(min(os.sched_getaffinity(0))),
        gateway._tool("nginx"),
        "-c",
        str(tmp_path / "nginx.conf"),
    ]
    async with running(Program("nginx", command, gateway.NGINX_SAYS, tmp_path / "log")):
        children = descendants(os.getpid())
        assert len(children) == 2  # the master and its worker
    with held(children) as staying:
        assert staying() == []
    assert killed == []
