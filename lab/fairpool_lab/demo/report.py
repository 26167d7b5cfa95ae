"""The demonstration's words: a table of tenants for each run, and the verdict."""

from __future__ import annotations

from collections.abc import Sequence

from rich import box
from rich.table import Table
from rich.text import Text

from fairpool_lab.demo.outcome import Check, Outcome


def table(run: Outcome) -> Table:
    """Each tenant's part in one run, the heaviest first; fits 80 columns. By use: in tokens really used."""
    shown = Table(
        box=box.SIMPLE_HEAD,
        title=f"{run.order.capitalize()}: shares at the last arrival, waits over the whole run",
        title_justify="left",
        title_style="bold",
        collapse_padding=True,
        pad_edge=False,
    )
    shown.add_column("tenant")
    for column in (
        "weight",
        "re-\nquests",
        "entitled",
        "received",
        "entitled\nby use",
        "received\nby use",
        "wait\np50, s",
        "wait\np99, s",
    ):
        shown.add_column(column, justify="right", no_wrap=True)
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
            f"{waited.p50:.2f}" if waited else "-",
            f"{waited.p99:.2f}" if waited else "-",
        )
    return shown


def verdict_lines(checks: Sequence[Check]) -> Table:
    """One row for each condition."""
    lines = Table.grid(padding=(0, 2))
    for check in checks:
        lines.add_row(
            Text("  holds", "green") if check.holds else Text("  FAILS", "bold red"), Text(check.text, overflow="fold")
        )
    return lines


def _against(received: float, entitled: float) -> Text:
    """A received share, marked where it is more than two points of a hundred off."""
    return Text(f"{received:.1%}", style="bold yellow" if abs(received - entitled) > 0.02 else "")
