"""The demonstration in small: real engines, both gateways and the official client, in a few seconds."""

from __future__ import annotations

import asyncio
import dataclasses
import io
import os
import re
import signal
from dataclasses import dataclass
from pathlib import Path

import pytest
import watchfiles
from rich.console import Console
from support.processes import PATIENCE, descendants, held
from support.up import pool, secret, weight, write

from fairpool_gateway.configwatch import read
from fairpool_gateway.decision_log import Complete
from fairpool_lab import traces
from fairpool_lab.cli import main
from fairpool_lab.demo import runs, scenario
from fairpool_lab.demo.outcome import outcome, verdict
from fairpool_lab.demo.scenario import Scenario
from fairpool_lab.demo.show import demonstrate
from fairpool_lab.errors import NothingToServe, ProcessFailed

TRACE = traces.read(traces.EXCERPT)[:60]
WEIGHTS = traces.weights(TRACE)


@dataclass(frozen=True)
class Shown:
    """What one demonstration left: its exit status, what it printed, its files."""

    status: int
    said: str
    out: Path


def resources(directory: Path, *more) -> Path:
    """A pool of few slots and the tenants of the short trace, as YAML."""
    served = pool("demo", models=["sim"], slots={"perEndpoint": 4}, queue={"timeout": "5m"})
    tenants = [weight(tenant, of="demo", weight=each) for tenant, each in WEIGHTS.items()]
    keys = secret(**{tenant: f"key-of-{tenant}" for tenant in WEIGHTS})
    write(directory / "pool.yaml", served, *tenants, keys, *more)
    return directory


@pytest.fixture(scope="module")
def short(tmp_path_factory) -> Scenario:
    chosen = scenario.of_trace(TRACE, resources(tmp_path_factory.mktemp("resources")))
    return dataclasses.replace(chosen, compression=120.0, speed=15.0, engines=2)


@pytest.fixture(scope="module")
def shown(short, tmp_path_factory) -> Shown:
    out, said = tmp_path_factory.mktemp("demo") / "made" / "[by it]", io.StringIO()
    status = demonstrate(short, out, Console(file=said, width=160))
    return Shown(status, said.getvalue(), out)


class TestWhatItShows:
    def test_it_says_what_runs_and_by_which_rule_tenants_have_their_weights(self, shown):
        assert "60 requests of 13 tenants" in shown.said
        assert traces.WEIGHT_RULE in shown.said

    def test_a_table_for_each_run_has_every_tenant_with_its_shares_and_its_waits(self, shown):
        for tenant, each in WEIGHTS.items():
            rows = re.findall(
                rf"^\s*{tenant}\s+{each}\s+\d+(?:\s+\d+\.\d%){{4}}(?:\s+\d+\.\d\d){{2}}\s*$",
                shown.said,
                re.MULTILINE,
            )
            assert len(rows) == 2

    def test_fair_keeps_the_bound_arrival_order_does_not_and_no_request_is_lost(self, shown):
        checks = verdict(*(self.read_again(shown, order) for order in ("arrival-order", "fair")))
        assert [check.holds for check in (*checks[:2], checks[5])] == [True, True, True]
        printed = re.findall(r"^  (holds|FAILS)  (.+)", shown.said, re.MULTILINE)
        assert [line == "holds" for line, _ in printed] == [check.holds for check in checks]
        assert shown.status == (0 if all(check.holds for check in checks) else 1)

    def test_the_logs_alone_give_the_same_verdict_again(self, shown, capsys):
        assert main(["lab", "gap", str(shown.out / "fair.decisions.jsonl")]) == 0
        assert main(["lab", "gap", str(shown.out / "arrival-order.decisions.jsonl")]) == 1

    def test_every_token_of_the_trace_was_generated_in_both_runs(self, shown):
        for order in ("arrival-order", "fair"):
            completed = [event for event in self.read_again(shown, order).log.events if isinstance(event, Complete)]
            assert sorted(event.used.output for event in completed) == sorted(
                request.output_tokens for request in TRACE
            )

    def test_picture_and_logs_are_where_it_says(self, shown):
        told = re.findall(r"^(?:picture|decision log) +(\S.*?)  \(", shown.said, re.MULTILINE)
        assert [Path(path) for path in told] == [
            shown.out / name for name in ("picture.svg", "arrival-order.decisions.jsonl", "fair.decisions.jsonl")
        ]
        assert all(Path(path).stat().st_size for path in told)

    def test_progress_reaches_the_end_in_both_runs(self, shown):
        assert len(re.findall(r"60/60", shown.said)) >= 2

    def read_again(self, shown: Shown, name: str):
        return outcome(name, shown.out / f"{name}.decisions.jsonl", [], 0)


class TestWhenItCannotGoOn:
    async def test_an_engine_that_dies_in_the_middle_ends_the_run_with_its_name(self, short, tmp_path):
        running = asyncio.create_task(runs.both(short, tmp_path, Console(file=io.StringIO())))
        await self.dispatching(running, tmp_path)
        children = descendants(os.getpid())
        with held(children) as staying:
            engine = next(pid for pid, command in children.items() if "fairpool_lab.engine" in command)
            os.kill(engine, signal.SIGKILL)
            with pytest.raises(
                ProcessFailed, match=r"^engine-\d ended by SIGKILL while it was needed; it said last:\n"
            ):
                await running
            assert staying() == []

    async def test_a_gateway_that_cannot_start_ends_it_with_the_gateways_own_words(self, short, tmp_path):
        (tmp_path / "arrival-order.decisions.jsonl").mkdir()
        with pytest.raises(ProcessFailed) as failed:
            await runs.both(short, tmp_path, Console(file=io.StringIO()))
        assert "the gateway in arrival order ended with status 1 before it served anything" in str(failed.value)
        assert "cannot write the decision log" in str(failed.value)
        assert descendants(os.getpid()) == {}

    async def dispatching(self, running: asyncio.Task[object], out: Path) -> None:
        """Wait for the first dispatch of the first run, or for its failure."""
        log = out / "arrival-order.decisions.jsonl"
        async with asyncio.timeout(PATIENCE):
            async for _ in watchfiles.awatch(out, rust_timeout=100, yield_on_timeout=True):
                if running.done() or (log.exists() and b"dispatch" in log.read_bytes()):
                    return


class TestItsResources:
    def test_are_a_tenant_with_a_key_for_each_client_of_the_trace_with_weights_by_the_rule(self):
        trace = traces.read(traces.EXCERPT)
        chosen = scenario.of_trace(trace)
        assert chosen.weights == traces.weights(trace)
        assert chosen.keys.keys() == chosen.weights.keys()
        assert {tenant.weight for tenant in chosen.pool.tenants} == {1, 2, 4}

    def test_are_compiled_as_for_a_cluster_and_end_up_in_the_file_of_both_gateways(self, short, shown):
        config = read(shown.out / "pool.json", strict=True)
        assert config.weights() == WEIGHTS
        assert len(config.endpoints) == 2
        assert config.model_copy(
            update={"endpoints": (), "discovery": short.config.discovery}
        ) == short.config.model_copy(update={"endpoints": ()})

    def test_that_are_not_accepted_are_told_of_before_anything_starts(self, tmp_path):
        again = weight("again", of="demo", tenantName=next(iter(WEIGHTS)))
        with pytest.raises(NothingToServe, match=r"Accepted=False \(Conflicted\)"):
            scenario.of_trace(TRACE, resources(tmp_path, again))

    def test_that_no_server_would_take_are_told_of_with_file_and_line(self, tmp_path):
        with pytest.raises(NothingToServe, match=rf"{tmp_path}/pool.yaml:\d+: .*weight"):
            scenario.of_trace(TRACE, resources(tmp_path, weight("more", of="demo", weight=5000)))

    def test_that_are_none_are_told_of(self, tmp_path):
        with pytest.raises(NothingToServe, match="it has to hold one FairPool"):
            scenario.of_trace(TRACE, tmp_path)
