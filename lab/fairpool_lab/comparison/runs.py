"""Runs a setup under one policy after another, with a bar that shows how far it is, and tells all of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from fairpool_lab.comparison.outcome import Outcome, measure
from fairpool_lab.comparison.setup import Setup
from fairpool_lab.measures.history import really_used
from fairpool_lab.policies import Listed
from fairpool_lab.report import PolicyRun, Report, measured
from fairpool_lab.simulation import Scenario, SimulatedRequest, simulate

_SHOWN_EVERY = 200
"""Requests between two looks at the bar, which is slower than they are."""


class Result(NamedTuple):
    """What one policy made of a setup: in figures, and if that was wanted as a page shows it."""

    outcome: Outcome
    drawn: PolicyRun | None


def of_each(policies: Sequence[Listed], setup: Setup, console: Console, *, draw: bool = False) -> tuple[Result, ...]:
    """What each policy makes of the setup; the bar goes to the console, and is gone in the end."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    scenario = setup.scenario()
    with Progress(*columns, console=console, transient=True) as progress:
        return tuple(_one(policy, setup, scenario, progress, draw=draw) for policy in policies)


def about(name: str, setup: Setup) -> str:
    """What was run, in words."""
    tenants = len({request.tenant for request in setup.trace})
    speed = "" if setup.speed == 1 else f", {setup.speed:g} times as fast"
    carried = " with carry" if setup.cost.carry else ""
    return (
        f"{len(setup.trace):,} requests of {tenants} tenants from {name}{speed}; {setup.endpoints} x "
        f"{setup.engine.name} with {setup.slots} slots, costs by {setup.estimator}{carried}, seed {setup.seed}"
    )


def as_json(trace: str, setup: Setup, outcomes: Sequence[Outcome], *, left_out: int) -> str:
    """All figures, for programs."""
    told: dict[str, Any] = {
        "trace": trace,
        "left_out": left_out,
        "speed": setup.speed,
        "engine": setup.engine.name,
        "endpoints": setup.endpoints,
        "slots": setup.slots,
        "prefix_cache": setup.block_tokens,
        "leave_after": setup.leaves_after,
        "weights": dict(setup.weights),
        "estimator": setup.estimator,
        "seed": setup.seed,
        "policies": outcomes,
    }
    return msgspec.json.encode(told).decode()


def report(name: str, command: str, setup: Setup, drawn: Sequence[PolicyRun]) -> Report:
    """The page of a comparison, which says how it came about."""
    tenants = len({request.tenant for request in setup.trace})
    told = {
        "trace": f"{name}: {len(setup.trace):,} requests of {tenants} tenants",
        "played": f"{setup.speed:g} times as fast" if setup.speed != 1 else "as it was recorded",
        "engines": f"{setup.endpoints} x {setup.engine.name}, {setup.slots} slots each",
        "costs": setup.estimator,
        "seed": str(setup.seed),
        "command": command,
    }
    return Report(f"{name} under {len(drawn)} orders", tuple(told.items()), tuple(drawn))


def _one(policy: Listed, setup: Setup, scenario: Scenario, progress: Progress, *, draw: bool) -> Result:
    bar = progress.add_task(policy.name, total=len(setup.trace))
    ended = 0

    def watch(_: SimulatedRequest) -> None:
        nonlocal ended
        ended += 1
        if not ended % _SHOWN_EVERY:
            progress.update(bar, completed=ended)

    run = simulate(scenario, policy.factory, watch=watch)
    progress.update(bar, completed=ended, description=f"{policy.name}: measuring")
    outcome = measure(policy, setup, run)
    drawn = None
    if draw:
        drawn = measured(
            policy.name,
            run.log,
            slots=setup.endpoints * setup.slots,
            source=policy.source,
            served=run.served(),
            alone=setup.alone,
            measure=really_used(setup.cost.input_weight, setup.cost.output_weight),
        )
    progress.remove_task(bar)
    return Result(outcome, drawn)
