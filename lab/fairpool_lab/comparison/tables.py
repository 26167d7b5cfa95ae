"""A comparison's words: a table of tenants for each policy, and one of all policies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from rich import box
from rich.table import Table
from rich.text import Text

from fairpool_lab.comparison.outcome import Outcome, Spread

_FAR_OFF = 0.02
"""A received share that is further from the entitled one is marked."""


def of_tenants(outcome: Outcome) -> Table:
    """What each tenant got under one policy."""
    shown = _table(f"{outcome.policy}: tokens and shares at the last arrival, times over the whole run, in seconds")
    shown.add_column("tenant", overflow="fold")
    for column in (
        "weight",
        "re-\nquests",
        "entitled\ntokens",
        "received\ntokens",
        "entitled",
        "received",
        "wait\np50",
        "wait\np99",
        "longest\nwithout",
        "first token\np50",
        "first token\np99",
        "slower\np50",
        "slower\np99",
    ):
        shown.add_column(column, justify="right", no_wrap=True)
    for tenant in outcome.tenants:
        off = abs(tenant.received_share - tenant.entitled_share) > _FAR_OFF
        shown.add_row(
            tenant.tenant,
            str(tenant.weight),
            str(tenant.requests),
            f"{tenant.entitled:,.0f}",
            f"{tenant.received:,}",
            f"{tenant.entitled_share:.1%}",
            Text(f"{tenant.received_share:.1%}", style="bold yellow" if off else ""),
            *_spread(tenant.wait),
            f"{tenant.drought:.2f}",
            *_spread(tenant.first_token),
            *_spread(tenant.slowdown),
        )
    return shown


def of_policies(outcomes: Sequence[Outcome]) -> Table:
    """All policies side by side, a row for each."""
    shown = _table("side by side")
    shown.add_column("policy", overflow="fold")
    for column, _ in _FIGURES:
        shown.add_column(column, justify="right", no_wrap=True)
    for outcome in outcomes:
        shown.add_row(outcome.policy, *(figure(outcome) for _, figure in _FIGURES))
    return shown


def _table(title: str) -> Table:
    return Table(box=box.SIMPLE_HEAD, title=title, title_justify="left", title_style="bold", pad_edge=False)


def _spread(spread: Spread | None) -> tuple[str, str]:
    return ("-", "-") if spread is None else (f"{spread.p50:.2f}", f"{spread.p99:.2f}")


def _number(value: float | None, form: str) -> str:
    return "-" if value is None else format(value, form)


_FIGURES: Final[tuple[tuple[str, Callable[[Outcome], str]], ...]] = (
    ("answered\nin full", lambda outcome: f"{outcome.completed:,}"),
    ("tokens\n/s", lambda outcome: f"{outcome.tokens_per_second:,.0f}"),
    ("slots taken\nwhen needed", lambda outcome: f"{outcome.utilisation:.1%}"),
    ("greatest\nshare error", lambda outcome: f"{outcome.greatest_difference:.1%}"),
    ("Jain's\nindex", lambda outcome: f"{outcome.jain:.3f}"),
    ("worst gap\n/ bound", lambda outcome: _number(outcome.gap_over_bound, ".2f")),
    ("pairs beyond\nthe bound", lambda outcome: f"{outcome.exceeded:,} of {outcome.pairs:,}"),
    ("Max\nDiff", lambda outcome: _number(outcome.greatest_service_difference, ".0f")),
    ("Avg\nDiff", lambda outcome: _number(outcome.mean_service_difference, ".0f")),
    ("first token\np50, p99", lambda outcome: ", ".join(_spread(outcome.first_token))),
    ("times slower\np50, p99", lambda outcome: ", ".join(_spread(outcome.slowdown))),
    ("prompts\ncached", lambda outcome: f"{outcome.cached_share:.1%}"),
)
"""What is told of a run as a whole: the name of a figure, and how it is written."""
