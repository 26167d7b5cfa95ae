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

from fairpool_gateway.decision_log import Complete
from fairpool_lab import traces
from fairpool_lab.cli import main
from fairpool_lab.commands.demo import demonstrate
from fairpool_lab.demo import runs, scenario
from fairpool_lab.demo.outcome import outcome, verdict
from fairpool_lab.errors import ProcessFailed

SHORT = dataclasses.replace(
    scenario.of_trace(traces.read(traces.EXCERPT)[:60]), compression=120.0, speed=15.0, engines=2, slots=4
)


@dataclass(frozen=True)
class Shown:
    """What one demonstration left: its exit status, what it printed, its files."""

    status: int
    said: str
    out: Path


@pytest.fixture(scope="module")
def shown(tmp_path_factory) -> Shown:
    out, said = tmp_path_factory.mktemp("demo") / "made" / "[by it]", io.StringIO()
    status = demonstrate(SHORT, out, Console(file=said, width=160))
    return Shown(status, said.getvalue(), out)


class TestWhatItShows:
    def test_it_says_what_runs_and_by_which_rule_tenants_have_their_weights(self, shown):
        assert "60 requests of 13 tenants" in shown.said
        assert traces.WEIGHT_RULE in shown.said

    def test_a_table_for_each_run_has_every_tenant_with_its_shares_and_its_waits(self, shown):
        for tenant, weight in SHORT.weights.items():
            rows = re.findall(
                rf"^\s*{tenant}\s+{weight}\s+\d+(?:\s+\d+\.\d%){{4}}(?:\s+\d+\.\d\d){{2}}\s*$",
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
                request.output_tokens for request in SHORT.trace
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
    async def test_an_engine_that_dies_in_the_middle_ends_the_run_with_its_name(self, tmp_path):
        running = asyncio.create_task(runs.both(SHORT, tmp_path, Console(file=io.StringIO())))
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

    async def test_a_gateway_that_cannot_start_ends_it_with_the_gateways_own_words(self, tmp_path):
        unfit = dataclasses.replace(SHORT, weights={**SHORT.weights, "c10": 5000})
        with pytest.raises(ProcessFailed) as failed:
            await runs.both(unfit, tmp_path, Console(file=io.StringIO()))
        assert "the gateway in arrival order ended with status 2 before it served anything" in str(failed.value)
        assert "weight" in str(failed.value)
        assert descendants(os.getpid()) == {}

    async def dispatching(self, running: asyncio.Task[object], out: Path) -> None:
        """Wait for the first dispatch of the first run, or for its failure."""
        log = out / "arrival-order.decisions.jsonl"
        async with asyncio.timeout(PATIENCE):
            async for _ in watchfiles.awatch(out, rust_timeout=100, yield_on_timeout=True):
                if running.done() or (log.exists() and b"dispatch" in log.read_bytes()):
                    return
