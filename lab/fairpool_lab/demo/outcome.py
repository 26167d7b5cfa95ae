"""What a run showed, computed from its decision log alone, and the verdict over both runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from fairpool_lab import decisions, gap, history, load, shares, waits
from fairpool_lab.decisions import Log
from fairpool_lab.demo.replay import Answer

TOGETHER = 5
"""Tenants that must have been backlogged together for half of a run: with fewer there is little to share."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """One run.

    Attributes:
        order: whose request went next.
        path: its decision log.
        log: the same, read.
        lost: what the client raised for requests that were not answered in full.
        gaps: how far tenants got ahead of each other.
        charged: received against entitled at the last arrival, in charges.
        used: the same in tokens really used.
        waits: by tenant.
        contention: how many tenants were backlogged together.
        throughput: what got done.
    """

    order: str
    path: Path
    log: Log
    lost: tuple[str, ...]
    gaps: gap.Gaps
    charged: shares.Shares
    used: shares.Shares
    waits: dict[str, waits.Waits]
    contention: load.Contention
    throughput: load.Throughput


@dataclass(frozen=True, slots=True)
class Check:
    """One condition of the verdict."""

    holds: bool
    text: str


def outcome(order: str, path: Path, answers: Sequence[Answer], expected: int) -> Outcome:
    """Read what a run left behind."""
    log = decisions.read(path)
    lost = [answer.error for answer in answers if answer.error is not None]
    lost += ["never answered"] * (expected - len(answers))
    measure = history.really_used(input_weight=1, output_weight=2)
    return Outcome(
        order=order,
        path=path,
        log=log,
        lost=tuple(lost),
        gaps=gap.measure(log.events),
        charged=shares.shares(log),
        used=shares.shares(log, measure=measure),
        waits=waits.waits(log.events),
        contention=load.contention(log.events),
        throughput=load.throughput(log.events, measure=measure),
    )


def verdict(arrival: Outcome, fair: Outcome) -> list[Check]:
    """What must hold of the two runs, and does or does not."""
    fair_difference, arrival_difference = fair.charged.greatest_difference, arrival.charged.greatest_difference
    ratio = fair.throughput.tokens_per_second / arrival.throughput.tokens_per_second
    together = [run.contention.part(TOGETHER) for run in (arrival, fair)]
    return [
        Check(fair.gaps.within_bound, f"fair: {_gap(fair)}, so within its bound over every interval"),
        Check(not arrival.gaps.within_bound, f"arrival order: {_gap(arrival)}, so beyond it"),
        Check(
            fair_difference <= arrival_difference / 2,
            f"greatest |received - entitled| share: fair {fair_difference:.2%}, arrival order "
            f"{arrival_difference:.2%}; at most half of it",
        ),
        Check(
            min(together) >= 1 / 2,
            f"{TOGETHER} or more tenants were backlogged together for {together[0]:.0%} (arrival order) and "
            f"{together[1]:.0%} (fair) of the run; at least half",
        ),
        Check(
            ratio >= 0.95,
            f"throughput: fair {fair.throughput.tokens_per_second:,.0f}, arrival order "
            f"{arrival.throughput.tokens_per_second:,.0f} tokens/s, a ratio of {ratio:.3f}; at least 0.95",
        ),
        Check(
            not arrival.lost and not fair.lost,
            f"requests lost: {len(arrival.lost)} in arrival order, {len(fair.lost)} fair; none may be",
        ),
    ]


def _gap(run: Outcome) -> str:
    worst = run.gaps.worst
    if worst is None:
        return "no two tenants were backlogged together"
    return (
        f"greatest gap {worst.gap:,} units ({worst.ahead} ahead of {worst.behind}) against {worst.bound:,}, "
        f"{worst.ratio:.2f} of it"
    )
