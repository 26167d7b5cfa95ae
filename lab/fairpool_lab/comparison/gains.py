"""Who gains and who loses by an edit of a pool: the same trace under the pool as it is and as it would be."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from rich import box
from rich.table import Table
from rich.text import Text

from fairpool_lab.comparison.outcome import Outcome, TenantOutcome

_NOTICED = 0.005
"""A change of a share that is smaller is none."""


@dataclass(frozen=True, slots=True)
class Change:
    """One tenant before and after the edit; None where the pool does not know it.

    Attributes:
        tenant: its name.
        before: what it got under the pool as it is.
        after: what it would get.
    """

    tenant: str
    before: TenantOutcome | None
    after: TenantOutcome | None

    @property
    def gain(self) -> float:
        """By how much its received share grows, as a part of all tokens; negative where it shrinks."""
        return _share(self.after) - _share(self.before)


def changes(before: Outcome, after: Outcome) -> tuple[Change, ...]:
    """What becomes of every tenant, who gains most first."""
    old = {each.tenant: each for each in before.tenants}
    new = {each.tenant: each for each in after.tenants}
    found = (Change(tenant, old.get(tenant), new.get(tenant)) for tenant in old.keys() | new.keys())
    return tuple(sorted(found, key=lambda change: (-change.gain, change.tenant)))


def table(found: tuple[Change, ...]) -> Table:
    """Every tenant, before and after."""
    shown = Table(box=box.SIMPLE_HEAD, collapse_padding=True, pad_edge=False)
    shown.add_column("tenant", overflow="fold")
    for heading, _ in _FIGURES:
        shown.add_column(heading, justify="right", no_wrap=True)
    shown.add_column("share", justify="right", no_wrap=True)
    for change in found:
        sides = (_both(figure, change) for _, figure in _FIGURES)
        shown.add_row(Text(change.tenant), *sides, _signed(change.gain))
    return shown


def verdict(found: tuple[Change, ...]) -> Iterator[str]:
    """Who gains and who loses, in words."""
    gaining = [change for change in found if change.gain >= _NOTICED]
    losing = [change for change in reversed(found) if change.gain <= -_NOTICED]
    for what, who in (("Gain", gaining), ("Lose", losing)):
        named = ", ".join(f"{change.tenant} ({100 * change.gain:+.1f} points)" for change in who)
        yield f"{what}: {named or 'nobody'}."


def _share(tenant: TenantOutcome | None) -> float:
    return 0.0 if tenant is None else tenant.received_share


def _both(figure: Callable[[TenantOutcome], str], change: Change) -> str:
    before, after = ("-" if side is None else figure(side) for side in (change.before, change.after))
    return before if before == after else f"{before} → {after}"


def _signed(gain: float) -> Text:
    style = "" if abs(gain) < _NOTICED else "green" if gain > 0 else "bold red"
    return Text(f"{100 * gain:+.1f}", style=style)


_FIGURES: Final[tuple[tuple[str, Callable[[TenantOutcome], str]], ...]] = (
    ("weight", lambda tenant: str(tenant.weight)),
    ("received", lambda tenant: f"{tenant.received_share:.1%}"),
    ("refused", lambda tenant: str(tenant.refused)),
    ("wait p50, s", lambda tenant: "-" if tenant.wait is None else f"{tenant.wait.p50:.2f}"),
    ("wait p99, s", lambda tenant: "-" if tenant.wait is None else f"{tenant.wait.p99:.2f}"),
)
