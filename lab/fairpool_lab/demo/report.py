"""The demonstration's words: a table of tenants for each run, and the verdict."""

from __future__ import annotations

from collections.abc import Sequence

from rich import box
from rich.table import Table
from rich.text import Text

from fairpool_lab.demo.outcome import Check, Outcome


def table(run: Outcome) -> Table:
    """Each tenant's part in one run, the heaviest first."""
    shown = Table(
        box=box.SIMPLE_HEAD,
        title=f"{run.order.capitalize()}: shares at the last arrival, waits over the whole run",
        title_justify="left",
        title_style="bold",
    )
    shown.add_column("tenant")
    for column in (
        "weight",
        "requests",
        "entitled",
        "received",
        "entitled,\ntokens used",
        "received,\ntokens used",
        "wait p50",
        "wait p99",
    ):
        shown.add_column(column, justify="right")
    used = {tenant.tenant: tenant for tenant in run.used.tenants}
    for tenant in sorted(run.charged.tenants, key=lambda tenant: (-tenant.entitled_share, tenant.tenant)):
        waited = run.waits.get(tenant.tenant)
        shown.add_row(
            tenant.tenant,
            str(tenant.weight),
            str(tenant.requests),
            f"{tenant.entitled_share:.1%}",
            _against(tenant.received_share, tenant.entitled_share),
            f"{used[tenant.tenant].entitled_share:.1%}",
            f"{used[tenant.tenant].received_share:.1%}",
            f"{waited.p50:.2f} s" if waited else "-",
            f"{waited.p99:.2f} s" if waited else "-",
        )
    return shown


def verdict_lines(checks: Sequence[Check]) -> Text:
    """One line for each condition."""
    lines = Text()
    for check in checks:
        lines.append("  holds  " if check.holds else "  FAILS  ", style="green" if check.holds else "bold red")
        lines.append(check.text + "\n")
    return lines


def _against(received: float, entitled: float) -> Text:
    """A received share, marked where it is more than two points of a hundred off."""
    return Text(f"{received:.1%}", style="bold yellow" if abs(received - entitled) > 0.02 else "")
