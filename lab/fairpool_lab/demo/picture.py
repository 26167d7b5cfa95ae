"""The demonstration's picture: what each tenant received over time, the gap against its bound, and the waits.

One SVG that follows the reader's light or dark theme: text, grid and paper are CSS variables. Lines are told apart by
colour and dash, in colours that are told apart with any colour vision (Okabe and Ito, 2008).
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure

from fairpool_gateway.decision_log import Dispatch
from fairpool_gateway.sfq import Q
from fairpool_lab.demo.outcome import Outcome
from fairpool_lab.gap import GapMeter

_SHOWN = 6
_COLOURS = ("#E69F00", "#0072B2", "#009E73", "#CC79A7", "#56B4E9", "#D55E00")
_DASHES = ("solid", (0, (6, 2)), (0, (2, 1)), (0, (6, 2, 1, 2)), (0, (1, 1)), (0, (8, 3)))
_INK, _GRID, _QUIET, _PAPER = "#010203", "#040506", "#070809", "#0a0b0c"
_STYLE = """<style>
svg { --ink: #1f2328; --grid: #d9dee4; --quiet: #8c959f; --paper: #ffffff; }
@media (prefers-color-scheme: dark) { svg { --ink: #e6edf3; --grid: #30363d; --quiet: #848d97; --paper: #0d1117; } }
</style>"""
_THEME = {
    _INK: "var(--ink, #57606a)",
    _GRID: "var(--grid, #afb8c1)",
    _QUIET: "var(--quiet, #8c959f)",
    _PAPER: "var(--paper, #ffffff)",
}
_SAMPLES = 120


def draw(runs: Sequence[Outcome], path: Path) -> None:
    """Write the picture of both runs."""
    settings: Any = {
        "svg.fonttype": "none",
        "svg.hashsalt": "fairpool",
        "font.family": "sans-serif",
        "font.size": 9,
        "text.color": _INK,
        "axes.edgecolor": _GRID,
        "axes.labelcolor": _INK,
        "axes.facecolor": _PAPER,
        "figure.facecolor": _PAPER,
        "xtick.color": _INK,
        "ytick.color": _INK,
        "grid.color": _GRID,
        "axes.grid": True,
        "axes.spines.top": False,
        "axes.spines.right": False,
    }
    with mpl.rc_context(settings):
        figure = Figure(figsize=(11, 11.5), layout="constrained")
        axes = figure.subplots(3, len(runs), sharey="row")
        tenants = _heaviest(runs[0])
        for column, run in enumerate(runs):
            _service(axes[0][column], run, tenants)
            _gap(axes[1][column], run)
            _waits(axes[2][column], run)
        _label_rows(axes)
        path.write_text(_themed(figure), encoding="utf-8")


def _themed(figure: Figure) -> str:
    drawn = io.StringIO()
    figure.savefig(drawn, format="svg", metadata={"Date": None})
    svg = drawn.getvalue()
    for placeholder, variable in _THEME.items():
        svg = svg.replace(placeholder, variable)
    return svg.replace("<defs>", _STYLE + "<defs>", 1)


def _label_rows(axes: Any) -> None:
    axes[0][0].set_ylabel("service received,\n1,000 tokens per weight")
    axes[1][0].set_ylabel("greatest gap so far / its bound")
    axes[2][0].set_ylabel("wait, seconds")


def _heaviest(run: Outcome) -> list[str]:
    """The tenants that waited most, by requests times wait: those whose share the order decides."""
    weary = {tenant: sum(waits.seconds) for tenant, waits in run.waits.items()}
    return sorted(weary, key=lambda tenant: (-weary[tenant], tenant))[:_SHOWN]


def _service(ax: Any, run: Outcome, shown: Sequence[str]) -> None:
    """Lines that stay parallel while tenants are backlogged: that is what fair means."""
    start = run.log.events[0].t
    steps: dict[str, tuple[list[float], list[float]]] = {}
    for event in run.log.events:
        if isinstance(event, Dispatch):
            times, totals = steps.setdefault(event.tenant, ([0.0], [0.0]))
            times.append(event.t - start)
            totals.append(totals[-1] + event.charge / Q / 1000)
    end = run.log.events[-1].t - start
    for tenant in sorted(steps.keys() - set(shown)):
        times, totals = steps[tenant]
        ax.step([*times, end], [*totals, totals[-1]], where="post", color=_QUIET, linewidth=0.6, alpha=0.6)
    for tenant, colour, dash in zip(shown, _COLOURS, _DASHES, strict=False):
        times, totals = steps[tenant]
        weight = next(part.weight for part in run.charged.tenants if part.tenant == tenant)
        ax.step(
            times, totals, where="post", color=colour, linestyle=dash, linewidth=1.8, label=f"{tenant} (w {weight})"
        )
    ax.axvline(run.charged.until - start, color=_QUIET, linewidth=1)
    ax.annotate(
        "last arrival",
        (run.charged.until - start, 0.98),
        xycoords=("data", "axes fraction"),
        xytext=(-3, 0),
        textcoords="offset points",
        ha="right",
        va="top",
        fontsize=8,
    )
    ax.set_title(f"{run.order.capitalize()}: service per weight", fontweight="bold")
    ax.set_xlabel("seconds")
    ax.legend(loc="upper left", fontsize=8, frameon=False)


def _gap(ax: Any, run: Outcome) -> None:
    start = run.log.events[0].t
    every = max(1, len(run.log.events) // _SAMPLES)
    meter = GapMeter()
    times, ratios = [0.0], [0.0]
    for number, event in enumerate(run.log.events):
        meter.observe(event)
        if number % every == 0 or number == len(run.log.events) - 1:
            times.append(event.t - start)
            ratios.append(max((pair.worst.ratio for pair in meter.gaps().pairs), default=0.0))
    ax.axhline(1.0, color=_INK, linewidth=1.2, linestyle=(0, (4, 3)))
    ax.annotate(
        "the bound",
        (1, 1.0),
        xycoords=("axes fraction", "data"),
        xytext=(0, 3),
        textcoords="offset points",
        ha="right",
        fontsize=8,
    )
    ax.step(times, ratios, where="post", color=_COLOURS[1], linewidth=1.8)
    ax.set_yscale("symlog", linthresh=1.0)
    ax.set_ylim(bottom=0)
    ax.set_title(f"{run.order.capitalize()}: the greatest gap over every interval", fontweight="bold")
    ax.set_xlabel("seconds")


def _waits(ax: Any, run: Outcome) -> None:
    """A line from the median to the 99th percentile for each tenant, the heaviest on the left."""
    demand = {part.tenant: part.requests for part in run.charged.tenants}
    tenants = sorted(run.waits, key=lambda tenant: (-demand.get(tenant, 0), tenant))
    places = range(len(tenants))
    medians = [run.waits[tenant].p50 for tenant in tenants]
    tails = [run.waits[tenant].p99 for tenant in tenants]
    ax.vlines(places, medians, tails, color=_QUIET, linewidth=1.2)
    ax.plot(places, medians, "o", color=_COLOURS[1], markersize=4, label="p50")
    ax.plot(places, tails, "^", color=_COLOURS[0], markersize=5, label="p99")
    ax.set_xticks(list(places), tenants, rotation=90, fontsize=7)
    ax.set_title(f"{run.order.capitalize()}: waits", fontweight="bold")
    ax.set_xlabel("tenants, those with most requests first")
    ax.legend(loc="upper right", fontsize=8, frameon=False)
