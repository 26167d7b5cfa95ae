"""What a run showed, computed from its decision log alone, and the verdict over both runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from fairpool_lab import decisions
from fairpool_lab.decisions import Log
from fairpool_lab.demo.replay import Answer
from fairpool_lab.measures import gap, history, load, shares, waits
from fairpool_lab.measures.distribution import Distribution

TOGETHER = 5
"""Tenants that must have been backlogged together for half of a run: with fewer there is little to share."""

LEAST_THROUGHPUT = 0.95
"""Of arrival order's: fairness may cost the pool next to nothing."""


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
    waits: dict[str, Distribution]
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
    off, arrival_off = fair.charged.greatest_difference, arrival.charged.greatest_difference
    speed, arrival_speed = (run.throughput.tokens_per_second for run in (fair, arrival))
    together = [run.contention.part(TOGETHER) for run in (arrival, fair)]
    return [
        Check(fair.gaps.within_bound, f"fair: {_gap(fair)}; no gap over any interval may exceed its bound"),
        Check(not arrival.gaps.within_bound, f"arrival order: {_gap(arrival)}; one must, or nothing was at stake"),
        Check(
            off <= arrival_off / 2,
            f"greatest |received - entitled| share: fair {off:.2%}, arrival order {arrival_off:.2%}; at most half",
        ),
        Check(
            min(together) >= 1 / 2,
            f"{TOGETHER} or more tenants were backlogged together for {together[0]:.0%} (arrival order) and "
            f"{together[1]:.0%} (fair) of the run; at least half",
        ),
        Check(
            speed >= LEAST_THROUGHPUT * arrival_speed,
            f"throughput: fair {speed:,.0f}, arrival order {arrival_speed:,.0f} tokens/s, "
            f"a ratio of {speed / arrival_speed if arrival_speed else 1.0:.3f}; at least {LEAST_THROUGHPUT}",
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
        f"greatest gap {worst.gap:,} units ({worst.ahead} ahead of {worst.behind}) against a bound of {worst.bound:,}, "
        f"{worst.ratio:.2f} times that"
    )
