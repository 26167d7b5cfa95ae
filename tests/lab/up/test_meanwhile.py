"""`fairpool up` where a pool is edited while engines or a gateway of this very pool start, or finish what they run."""

from __future__ import annotations

import asyncio
import json
import os
import re
import sys
from pathlib import Path

import pytest
import trustme
from support.processes import descendants
from support.up import certificate, pool, secret, weight, write
from support.up_session import until

from fairpool_lab.up import pool as pools
from fairpool_lab.up import programs
from fairpool_lab.up.state import CONFIG, PoolState

HELD = "import os, sys; open(sys.argv[1]).close(); os.execv(sys.argv[2], sys.argv[2:])"
"""A program that becomes another once somebody opens its gate."""
FAILS = (sys.executable, "-c", "raise SystemExit(3)")


class Gate:
    """Behind it engines of the model `large` wait before they start, each for its own opening."""

    def __init__(self, path: Path, real) -> None:
        self.reached = 0
        self.fails = False
        self._path = path
        self._real = real
        os.mkfifo(path)

    def engine(self, name, models, output, *arguments, heard=None):
        engine = self._real(name, models, output, *arguments, heard=heard)
        if "large" not in models:
            return engine
        self.reached += 1
        behind = FAILS if self.fails else engine.command
        return programs.Program(name, [sys.executable, "-c", HELD, str(self._path), *behind], engine.announces, output)

    async def open(self) -> None:
        """Let the next that gets there through."""
        (await asyncio.to_thread(self._path.open, "w")).close()


@pytest.fixture
def gate(tmp_path, monkeypatch) -> Gate:
    gate = Gate(tmp_path / "gate", programs.engine)
    monkeypatch.setattr(programs, "engine", gate.engine)
    return gate


@pytest.fixture
def written(monkeypatch) -> list[str]:
    """Each configuration that is written for a gateway."""
    written: list[str] = []
    real = PoolState.write

    def write(self, contents):
        written.extend(content.decode() for name, content in contents.items() if name == CONFIG)
        real(self, contents)

    monkeypatch.setattr(PoolState, "write", write)
    return written


async def test_a_tenant_and_then_the_last_are_served_no_more_while_engines_start(place, gate):
    async with place.session() as said:
        write(place.files / "all.yaml", pool(models=["large"]), weight("search"), weight("batch"))
        await until(lambda: gate.reached == 1)
        write(place.files / "all.yaml", pool(models=["large"]), weight("search"))
        await until(lambda: '"batch"' not in place.config())
        write(place.files / "all.yaml", pool(models=["large"]))
        await until(lambda: json.loads(place.config())["suspend"])
        assert not [line for line in said if "cannot be done yet" in line]
        await gate.open()


async def test_what_was_taken_out_while_engines_start_is_in_nothing_that_the_gateway_reads(place, gate, written):
    async with place.session() as said:
        more = (pool("more", models=["large"]), weight("early", of="more"))
        write(place.files / "keys.yaml", secret(search="k-1", batch="k-2", early="k-3", late="k-4"))
        write(place.files / "more.yaml", *more, weight("late", of="more"))
        await until(lambda: gate.reached == 1)
        write(place.files / "more.yaml", *more)
        await until(lambda: any(re.match(r"  tenant early +weight +100 100\.0%", line) for line in said))
        written.clear()
        await gate.open()
        await until(lambda: any(line.startswith("Pool default/more, ") and "http" in line for line in said))
        assert any('"early"' in config for config in written)
        assert not [config for config in written if '"late"' in config]


async def test_a_gateway_has_its_certificate_for_as_long_as_it_listens_with_it(place, gate):
    files = place.state / "default.llama"
    async with place.session() as said:
        write(place.files / "pair.yaml", certificate(trustme.CA().issue_cert("127.0.0.1")))
        over_tls = pool(gateway={"tls": {"certificateRef": {"name": "pair"}}})
        write(place.files / "all.yaml", over_tls, weight("search"), weight("batch"))
        await until(lambda: any("https:" in line for line in said))
        write(place.files / "all.yaml", pool(models=["large"]), weight("search", weight=7), weight("batch"))
        await until(lambda: "is in force" in (files / "gateway.log").read_text(encoding="utf-8"))
        assert {path.name for path in (files / "tls").iterdir()} == {"tls.crt", "tls.key"}
        await gate.open()
        await until(lambda: not (files / "tls").exists())


async def test_a_gateway_stays_where_a_change_that_would_end_it_is_taken_back_while_engines_start(place, gate):
    async with place.session() as said:
        before = gateways()
        write(place.files / "pair.yaml", certificate(trustme.CA().issue_cert("127.0.0.1")))
        over_tls = pool(models=["large"], gateway={"tls": {"certificateRef": {"name": "pair"}}})
        write(place.files / "all.yaml", over_tls, weight("search"), weight("batch"))
        await until(lambda: gate.reached == 1)
        write(place.files / "all.yaml", pool(models=["large"]), weight("search", weight=7), weight("batch"))
        await until(lambda: any("weight    7" in line for line in said))
        await gate.open()
        await until(lambda: any(re.match("  endpoints  1 simulated engine, large", line) for line in said))
        assert gateways() == before


def gateways() -> list[int]:
    """Those that run."""
    return [pid for pid, command in descendants(os.getpid()).items() if "fairpool_gateway" in command]


async def test_a_failure_is_told_though_something_else_was_edited_before_it(place, gate):
    gate.fails = True
    async with place.session() as said:
        write(place.files / "all.yaml", pool(models=["large"]), weight("search"), weight("batch"))
        await until(lambda: gate.reached == 1)
        write(place.files / "stray.yaml", weight("stray", of="nothing"))
        await until(lambda: any("stray" in line for line in said))
        await gate.open()
        await until(lambda: any("cannot be done yet" in line for line in said))


async def test_a_failure_is_not_told_beside_the_edit_that_mends_it(place, gate, monkeypatch):
    gate.fails = True
    monkeypatch.setattr(pools, "_AGAIN_SECONDS", 0.01)
    async with place.session() as said:
        write(place.files / "all.yaml", pool(models=["large"]), weight("search"), weight("batch"))
        await until(lambda: gate.reached == 1)
        await gate.open()
        await until(lambda: gate.reached == 2)
        known = len(said)
        write(place.files / "all.yaml", pool(models=["small"]), weight("search", weight=7), weight("batch"))
        await until(lambda: any("weight    7" in line for line in said[known:]))
        assert not [line for line in said[known:] if "cannot be done yet" in line]
        await gate.open()
