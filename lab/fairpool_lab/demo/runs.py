"""Runs a scenario in both orders, one after the other, on the same engines, each through a gateway of its own."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from fairpool_lab.demo import scenario
from fairpool_lab.demo.outcome import Outcome, outcome
from fairpool_lab.demo.replay import Answer, replay
from fairpool_lab.demo.scenario import Scenario
from fairpool_lab.processes import running


async def both(chosen: Scenario, out: Path, console: Console) -> tuple[Outcome, Outcome]:
    """Run in order of arrival, then fairly; logs go to `out`.

    Raises:
        ProcessFailed: a gateway or an engine did not start or did not last.
    """
    engines = [scenario.engine(chosen, number, out) for number in range(chosen.engines)]
    columns = (TextColumn("{task.description:14}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    async with running(*engines) as announced:
        config = out / "pool.json"
        config.write_text(scenario.pool_config(chosen, [said[1] for said in announced], out), encoding="utf-8")
        with Progress(*columns, console=console) as progress:
            arrival = await _one(scenario.ARRIVAL_ORDER, chosen, config, progress)
            fair = await _one(scenario.FAIR, chosen, config, progress)
    return arrival, fair


async def _one(order: str, chosen: Scenario, config: Path, progress: Progress) -> Outcome:
    name = order.replace(" ", "-")
    decision_log = config.with_name(f"{name}.decisions.jsonl")
    gateway = scenario.gateway(order, config, decision_log, config.with_name(f"{name}.gateway.log"))
    bar = progress.add_task(order, total=len(chosen.trace))

    def ended(_: Answer) -> None:
        progress.advance(bar)

    async with running(gateway) as [said]:
        answers = await replay(
            chosen.trace,
            base_url=f"{said[1]}/v1",
            model=chosen.model,
            keys=chosen.keys,
            compression=chosen.compression,
            on_answer=ended,
        )
    return outcome(order, decision_log, answers, len(chosen.trace))
