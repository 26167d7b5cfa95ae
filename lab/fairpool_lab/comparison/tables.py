"""A comparison's words: a table of tenants for each policy, and one of all policies.

A table has as many of its figures as fit the width, those that matter least being left out first, and says which it
left out. So nothing is cut short, and a wide terminal or `--json` shows everything.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from fairpool_lab.comparison.outcome import Outcome, Spread, TenantOutcome

_FAR_OFF = 0.02
"""A received share that is further from the entitled one is marked."""

_NO_END = 10_000
"""Columns of a console that everything fits."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _Figure(Generic[T]):
    """One column: its heading, what it says of a row, and how much it matters."""

    heading: str
    written: Callable[[T], str | Text]
    matters: int


def of_tenants(outcome: Outcome, console: Console) -> Table:
    """What each tenant got under one policy, as wide as the console."""
    title = f"{outcome.policy}: tokens and shares at the last arrival, times over the whole run, in seconds"
    return _table(title, "tenant", [(each.tenant, each) for each in outcome.tenants], _OF_TENANTS, console)


def of_policies(outcomes: Sequence[Outcome], console: Console) -> Table:
    """All policies side by side, a row for each, as wide as the console."""
    return _table("side by side", "policy", [(each.policy, each) for each in outcomes], _OF_POLICIES, console)


def _table(
    title: str, kind: str, rows: Sequence[tuple[str, T]], figures: Sequence[_Figure[T]], console: Console
) -> Table:
    shown = list(figures)
    table = _of(title, kind, rows, shown)
    unbounded = console.options.update(width=_NO_END)
    while shown and console.measure(table, options=unbounded).maximum > console.width:
        shown.remove(min(shown, key=lambda figure: figure.matters))
        table = _of(title, kind, rows, shown)
    if left_out := [" ".join(figure.heading.split()) for figure in figures if figure not in shown]:
        table.caption = f"No room here for {', '.join(left_out)}: --json has all."
    return table


def _of(title: str, kind: str, rows: Sequence[tuple[str, T]], figures: Sequence[_Figure[T]]) -> Table:
    table = Table(
        box=box.SIMPLE_HEAD,
        title=title,
        title_justify="left",
        title_style="bold",
        caption_justify="left",
        collapse_padding=True,
        pad_edge=False,
    )
    table.add_column(kind, overflow="fold")
    for figure in figures:
        table.add_column(figure.heading, justify="right", no_wrap=True)
    for name, row in rows:
        table.add_row(Text(name), *(figure.written(row) for figure in figures))
    return table


def _received(tenant: TenantOutcome) -> Text:
    off = abs(tenant.received_share - tenant.entitled_share) > _FAR_OFF
    return Text(f"{tenant.received_share:.1%}", style="bold yellow" if off else "")


def _p50(spread: Spread | None) -> str:
    return "-" if spread is None else f"{spread.p50:.2f}"


def _p99(spread: Spread | None) -> str:
    return "-" if spread is None else f"{spread.p99:.2f}"


def _number(value: float | None, form: str) -> str:
    return "-" if value is None else format(value, form)


_OF_TENANTS: Final[tuple[_Figure[TenantOutcome], ...]] = (
    _Figure("weight", lambda tenant: str(tenant.weight), 9),
    _Figure("re-\nquests", lambda tenant: f"{tenant.requests:,}", 8),
    _Figure("entitled\ntokens", lambda tenant: f"{tenant.entitled:,.0f}", 1),
    _Figure("received\ntokens", lambda tenant: f"{tenant.received:,}", 1),
    _Figure("entitled", lambda tenant: f"{tenant.entitled_share:.1%}", 10),
    _Figure("received", _received, 10),
    _Figure("wait\np50", lambda tenant: _p50(tenant.wait), 7),
    _Figure("wait\np99", lambda tenant: _p99(tenant.wait), 7),
    _Figure("longest\nwithout", lambda tenant: f"{tenant.drought:.2f}", 5),
    _Figure("first token\np50", lambda tenant: _p50(tenant.first_token), 4),
    _Figure("first token\np99", lambda tenant: _p99(tenant.first_token), 4),
    _Figure("slower\np50", lambda tenant: _p50(tenant.slowdown), 3),
    _Figure("slower\np99", lambda tenant: _p99(tenant.slowdown), 3),
)

_OF_POLICIES: Final[tuple[_Figure[Outcome], ...]] = (
    _Figure("answered\nin full", lambda outcome: f"{outcome.completed:,}", 2),
    _Figure("tokens\n/s", lambda outcome: f"{outcome.tokens_per_second:,.0f}", 9),
    _Figure("slots taken\nwhen needed", lambda outcome: f"{outcome.utilisation:.1%}", 2),
    _Figure("share\nerror", lambda outcome: f"{outcome.greatest_difference:.1%}", 10),
    _Figure("Jain's\nindex", lambda outcome: f"{outcome.jain:.3f}", 3),
    _Figure("gap /\nbound", lambda outcome: _number(outcome.gap_over_bound, ".2f"), 10),
    _Figure("pairs beyond\nthe bound", lambda outcome: f"{outcome.exceeded:,} of {outcome.pairs:,}", 4),
    _Figure("Max\nDiff", lambda outcome: _number(outcome.greatest_service_difference, ".0f"), 6),
    _Figure("Avg\nDiff", lambda outcome: _number(outcome.mean_service_difference, ".0f"), 6),
    _Figure("first token\np50", lambda outcome: _p50(outcome.first_token), 8),
    _Figure("first token\np99", lambda outcome: _p99(outcome.first_token), 8),
    _Figure("slower\np50", lambda outcome: _p50(outcome.slowdown), 5),
    _Figure("slower\np99", lambda outcome: _p99(outcome.slowdown), 5),
    _Figure("prompts\ncached", lambda outcome: f"{outcome.cached_share:.1%}", 1),
)
