"""The demonstration's picture: what each tenant received over time, every pair's gap against its bound, and the waits.

One SVG that follows the reader's light or dark theme: text, grid, paper and pale colours are CSS variables. Lines are
told apart by colour and dash, marks by colour and shape, in colours that are told apart with any colour vision (Okabe
and Ito, 2008; two of them darker on white, for contrast).
"""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure

from fairpool_gateway.decision_log import Dispatch
from fairpool_lab.demo.outcome import Outcome
from fairpool_lab.measures.gap import Gap

_SHOWN = 6
_INK, _GRID, _QUIET, _PAPER, _ORANGE, _SKY = "#010203", "#040506", "#070809", "#0a0b0c", "#0d0e0f", "#101112"
_BLUE, _RED = "#0072B2", "#D55E00"
_COLOURS = (_ORANGE, _BLUE, "#009E73", "#CC79A7", _SKY, _RED)
_DASHES = ("solid", (0, (6, 2)), (0, (2, 1)), (0, (6, 2, 1, 2)), (0, (1, 1)), (0, (8, 3)))
_THEMES = {
    "ink": (_INK, "#1f2328", "#e6edf3"),
    "grid": (_GRID, "#d9dee4", "#30363d"),
    "quiet": (_QUIET, "#8c959f", "#848d97"),
    "paper": (_PAPER, "#ffffff", "#0d1117"),
    "orange": (_ORANGE, "#bd8200", "#E69F00"),
    "sky": (_SKY, "#3b92c8", "#56B4E9"),
}
"""By CSS variable: what stands for it while drawing, its light value, its dark value."""

_TITLE = "Service per weight over time, gaps against their bounds, and waits, in arrival order and fair"


def draw(runs: Sequence[Outcome], path: Path) -> None:
    """Write the picture of both runs."""
    settings: Any = {
        "svg.fonttype": "none",
        "svg.hashsalt": "fairpool",
        "path.simplify_threshold": 0.4,
        "font.sans-serif": ["DejaVu Sans", "Verdana", "sans-serif"],
        "font.size": 10,
        "text.color": _INK,
        "axes.edgecolor": _GRID,
        "axes.labelcolor": _INK,
        "axes.facecolor": _PAPER,
        "figure.facecolor": _PAPER,
        "xtick.color": _INK,
        "ytick.color": _INK,
        "grid.color": _GRID,
        "axes.grid": True,
        "axes.axisbelow": True,
        "axes.titleweight": "bold",
        "axes.spines.top": False,
        "axes.spines.right": False,
        "legend.frameon": False,
        "legend.fontsize": 9,
        "legend.handlelength": 3.2,
    }
    with mpl.rc_context(settings):
        figure = Figure(figsize=(11, 11.5), layout="constrained")
        axes = figure.subplots(3, len(runs), sharey="row")
        tenants = _weary(runs[0])
        for column, run in enumerate(runs):
            _service(axes[0][column], run, tenants)
            _gaps(axes[1][column], run)
            _waits(axes[2][column], run)
        _scale_gaps(axes[1], [pair.worst for run in runs for pair in run.gaps.pairs], runs[0].log.header.q)
        longest = max((waits.p99 for run in runs for waits in run.waits.values()), default=0.0)
        axes[2][0].set_ylim(0, 1.2 * longest or 1.0)
        axes[0][0].set_ylabel("service received,\n1,000 tokens per weight")
        axes[1][0].set_ylabel("greatest gap of a pair,\ntokens per weight")
        axes[2][0].set_ylabel("wait, seconds")
        path.write_text(_finished(figure), encoding="utf-8")


def _finished(figure: Figure) -> str:
    """The drawing as SVG, with its themes, its title, and no more digits than can be seen."""
    drawn = io.StringIO()
    figure.savefig(drawn, format="svg", metadata={"Date": None})
    svg = re.sub(r" *\n *", "\n", re.sub(r"(?<=\d\.\d\d)\d+", "", drawn.getvalue()))
    svg = re.sub(r"<g([^>]*)>((?:\s*<use[^>]* style=\"[^\"]*\"/>)+)\s*</g>", _style_once, svg)
    for name, (placeholder, light, _) in _THEMES.items():
        svg = svg.replace(placeholder, f"var(--{name}, {light})")
    light, dark = (" ".join(f"--{name}: {theme[which]};" for name, theme in _THEMES.items()) for which in (1, 2))
    style = f"<style>svg {{ {light} }} @media (prefers-color-scheme: dark) {{ svg {{ {dark} }} }}</style>"
    return svg.replace("<metadata>", f"<title>{_TITLE}</title>\n{style}\n<metadata>", 1)


def _style_once(marks: re.Match[str]) -> str:
    """A group of marks that look alike, with their look said once for the group."""
    looks = set(re.findall(r" style=\"[^\"]*\"", marks[2]))
    if len(looks) > 1:
        return marks[0]
    look = looks.pop()
    return f"<g{marks[1]}{look}>{marks[2].replace(look, '')}</g>"


def _weary(run: Outcome) -> list[str]:
    """The tenants that waited most, all their requests together: those whose share the order decides."""
    waited = {tenant: sum(waits.values) for tenant, waits in run.waits.items()}
    return sorted(waited, key=lambda tenant: (-waited[tenant], tenant))[:_SHOWN]


def _service(ax: Any, run: Outcome, shown: Sequence[str]) -> None:
    """Lines that run together while tenants are backlogged: that is what fair means."""
    moments = [event.t for event in run.log.events] or [run.charged.until]
    start, end = moments[0], moments[-1]
    lines: dict[str, tuple[list[float], list[float]]] = {}
    for event in run.log.events:
        if isinstance(event, Dispatch):
            times, totals = lines.setdefault(event.tenant, ([0.0], [0.0]))
            times.append(event.t - start)
            totals.append(totals[-1] + event.charge / run.log.header.q / 1000)
    label = "others"
    for tenant in sorted(lines.keys() - set(shown)):
        times, totals = lines[tenant]
        ax.plot([*times, end - start], [*totals, totals[-1]], color=_QUIET, linewidth=0.6, label=label)
        label = ""
    weights = {part.tenant: part.weight for part in run.charged.tenants}
    for tenant, colour, dash in zip(shown, _COLOURS, _DASHES, strict=False):
        if tenant in lines:
            named = f"{tenant}, weight {weights[tenant]}"
            ax.plot(*lines[tenant], color=colour, linestyle=dash, linewidth=2, label=named)
    ax.axvline(run.charged.until - start, color=_QUIET, linewidth=1)
    ax.annotate(
        "last arrival",
        (run.charged.until - start, 0.98),
        xycoords=("data", "axes fraction"),
        xytext=(4, 0),
        textcoords="offset points",
        va="top",
        fontsize=9,
    )
    ax.set_title(f"{run.order.capitalize()}: service per weight")
    ax.set_xlabel("seconds")
    handles, labels = ax.get_legend_handles_labels()
    others = int("others" in labels)
    ax.legend([*handles[others:], *handles[:others]], [*labels[others:], *labels[:others]], loc="upper left")


def _gaps(ax: Any, run: Outcome) -> None:
    """A mark for each ordered pair of tenants; those above the line exceed their bound."""
    q, pairs = run.log.header.q, run.gaps.pairs
    for within, mark, colour, label in ((True, "o", _BLUE, "within the bound"), (False, "x", _RED, "beyond the bound")):
        worst = [pair.worst for pair in pairs if pair.within_bound == within]
        bounds, gaps = [gap.bound / q for gap in worst], [gap.gap / q for gap in worst]
        if worst:
            ax.plot(bounds, gaps, mark, color=colour, markersize=3.5, label=f"{len(worst)} {label}")
    ax.set_title(f"{run.order.capitalize()}: {run.gaps.exceeded or 'none'} of {len(pairs)} pairs beyond the bound")
    ax.set_xlabel("its bound, tokens per weight")


def _scale_gaps(axes: Sequence[Any], worst: Sequence[Gap], q: int) -> None:
    """The same scales for all runs, and the line on which a gap equals its bound."""
    bounds = [gap.bound / q for gap in worst] or [1.0, 1000.0]
    least, most = min(bounds), max(bounds)
    ends = (least / 1.5, most * 1.5)
    highest = 1.5 * max([most, *(gap.gap / q for gap in worst)])
    for ax in axes:
        ax.plot(ends, ends, color=_INK, linewidth=1.2, linestyle=(0, (4, 3)), label="gap = bound")
        for scale, axis in ((ax.set_xscale, ax.xaxis), (ax.set_yscale, ax.yaxis)):
            scale("log")
            axis.set_major_formatter("{x:,.0f}")
            axis.set_minor_formatter("")
        ax.set_xlim(*ends)
        ax.set_ylim(least / 4, highest)
        ax.legend(loc="lower right")


def _waits(ax: Any, run: Outcome) -> None:
    """A line from the median to the 99th percentile for each tenant, those that ask most on the left."""
    demand = {part.tenant: part.requests for part in run.charged.tenants}
    tenants = sorted(run.waits, key=lambda tenant: (-demand.get(tenant, 0), tenant))
    places = range(len(tenants))
    medians = [run.waits[tenant].p50 for tenant in tenants]
    tails = [run.waits[tenant].p99 for tenant in tenants]
    ax.vlines(places, medians, tails, color=_QUIET, linewidth=1.2)
    ax.plot(places, tails, "^", color=_ORANGE, markersize=5.5, label="p99", clip_on=False)
    ax.plot(places, medians, "o", color=_BLUE, markersize=4.5, label="p50", clip_on=False)
    ax.set_xticks(list(places), tenants, rotation=90, fontsize=8)
    ax.grid(visible=False, axis="x")
    ax.set_title(f"{run.order.capitalize()}: waits")
    ax.set_xlabel("tenants, those with most requests first")
    ax.legend(loc="upper right", ncols=2)
