"""The five charts of a run, each beside the same chart of the other runs and on the same scale."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from operator import mul
from typing import Final
from xml.etree.ElementTree import Element

from fairpool_lab.measures.distribution import Distribution
from fairpool_lab.report.chart import About, Axis, Chart
from fairpool_lab.report.markup import element
from fairpool_lab.report.report import Curve, PolicyRun, Report, TenantResult
from fairpool_lab.report.scales import seconds

SHOWN: Final = 6
"""Tenants with a line of their own: as many as can be told apart."""

_PALE: Final = 60
"""Tenants that are drawn behind them; of more, those with most requests."""

_ROWS: Final = 30
"""Tenants whose shares are drawn, those entitled to most; the table has all."""


@dataclass(frozen=True, slots=True)
class Scales:
    """What all runs of a report share: how far axes go, and which tenants are shown, in the order of their colours."""

    seconds: float
    service: float
    gap: tuple[float, float]
    wait: tuple[float, float]
    share: float
    shown: tuple[str, ...]


def scales(report: Report) -> Scales:
    """The scales of a report."""
    tenants = [tenant for run in report.runs for tenant in run.tenants]
    gaps = [value for run in report.runs for value in (*run.distances.gap.values, *run.distances.bound.values)]
    longest = max((wait for tenant in tenants for wait in tenant.waits), default=1.0)
    service = max((tenant.service.values[-1] for tenant in tenants if tenant.service.values), default=0.0)
    share = max((max(tenant.entitled_share, tenant.received_share) for tenant in tenants), default=0.0)
    return Scales(
        seconds=max((run.seconds for run in report.runs), default=0.0) or 1.0,
        service=service or 1.0,
        gap=(_floor(min((gap for gap in gaps if gap > 0), default=1.0)), 1.3 * max([2.0, *gaps])),
        wait=(max(1e-3, longest / 1e5), max(1e-2, longest)),
        share=1.05 * share or 1.0,
        shown=_weary(report.runs[0].tenants),
    )


def service(run: PolicyRun, by: Scales, name: str) -> Element:
    """Tokens per weight over time: lines of tenants that wait run together where the order is fair."""
    totals = [(_at(tenant.service, run.until), tenant.tenant) for tenant in run.tenants]
    words = "Nobody asked for anything."
    if totals:
        (least, behind), (most, ahead) = min(totals), max(totals)
        words = (
            f"When the last request arrived, {ahead} had most for its weight, {most:,.0f} tokens, and {behind} least, "
            f"{least:,.0f}."
        )
    chart = Chart(
        About(name, f"{run.policy}: service per weight over time", words),
        Axis("seconds", 0, by.seconds),
        Axis("tokens per weight", 0, by.service),
    )
    pale = [tenant for tenant in run.tenants if tenant.tenant not in by.shown]
    for tenant in sorted(pale, key=lambda tenant: (-tenant.requests, tenant.tenant))[:_PALE]:
        chart.line(tenant.service, "pale")
    found = {tenant.tenant: tenant for tenant in run.tenants}
    for place, shown in enumerate(by.shown):
        if shown in found:
            chart.line(found[shown].service, f"tenant-{place}")
    chart.moment(run.until, "last arrival")
    return _figure(chart, run.policy, words)


def distances(run: PolicyRun, by: Scales, name: str) -> Element:
    """The greatest gap over time, and its bound."""
    found = run.distances
    words = f"{found.exceeded or 'None'} of {found.pairs:,} ordered pairs of tenants got beyond the bound."
    if found.gap.values:
        place = max(range(len(found.gap.values)), key=lambda place: found.gap.values[place])
        words += (
            f" The greatest gap drawn is {found.gap.values[place]:,.0f} tokens per weight, after "
            f"{seconds(found.gap.times[place])}, where the bound is {found.bound.values[place]:,.0f}."
        )
    chart = Chart(
        About(name, f"{run.policy}: greatest gap over time against its bound", words),
        Axis("seconds", 0, by.seconds),
        Axis("tokens per weight", *by.gap, logarithmic=True),
    )
    chart.line(found.bound, "bound", steps=True)
    chart.line(found.gap, "gap", steps=True)
    for time, gap, bound in zip(found.gap.times, found.gap.values, found.bound.values, strict=True):
        if gap > bound:
            chart.disc(chart.x.at(time), chart.y.at(gap), "beyond")
    return _figure(chart, run.policy, words)


def waits(run: PolicyRun, by: Scales, name: str) -> Element:
    """How many requests waited at most so long."""
    every = [wait for tenant in run.tenants for wait in tenant.waits]
    words = "Nothing was dispatched."
    if every:
        found = Distribution.of(every)
        words = (
            f"Half of all requests waited at most {seconds(found.p50)}, 99 in 100 at most {seconds(found.p99)}, "
            f"and none longer than {seconds(found.values[-1])}."
        )
    chart = Chart(
        About(name, f"{run.policy}: waits from arrival to dispatch", words),
        Axis("waited at most", *by.wait, logarithmic=True, written=seconds),
        Axis("% of requests", 0, 100),
    )
    named = {tenant.tenant: tenant for tenant in run.tenants}
    for place, shown in enumerate(by.shown):
        if shown in named and named[shown].waits:
            chart.line(_cumulative(named[shown].waits), f"tenant-{place}")
    if every:
        chart.line(_cumulative(every), "all")
    return _figure(chart, run.policy, words)


def shares(run: PolicyRun, by: Scales, name: str) -> Element:
    """What each tenant was entitled to and what it received, while demand lasted."""
    tenants = sorted(run.tenants, key=lambda tenant: (-tenant.entitled_share, tenant.tenant))
    words = "Nothing was given."
    if tenants:
        worst = max(tenants, key=lambda tenant: abs(tenant.received_share - tenant.entitled_share))
        words = (
            f"Furthest from what was due: {worst.tenant} received {worst.received_share:.1%} of all tokens and was "
            f"entitled to {worst.entitled_share:.1%}."
        )
    drawn = tenants[:_ROWS]
    if len(tenants) > len(drawn):
        words += f" Drawn are the {len(drawn)} of {len(tenants):,} tenants that are entitled to most."
    row, top = 22, 30
    chart = Chart(
        About(name, f"{run.policy}: entitled and received shares", words),
        Axis("% of all tokens", 0, 100 * by.share),
        None,
        height=top + row * max(3, len(drawn)) + 42,
        left=104,
    )
    for place, tenant in enumerate(drawn):
        y = top + row * (place + 0.5)
        due, got = chart.x.at(100 * tenant.entitled_share), chart.x.at(100 * tenant.received_share)
        chart.text(96, y + 4, _clipped(tenant.tenant), "end")
        chart.link(due, got, y, "short" if got < due else "over")
        chart.disc(got, y, "received")
        chart.bar(due, y, "entitled")
    return _figure(chart, run.policy, words)


def utilisation(run: PolicyRun, by: Scales, name: str) -> Element:
    """The part of the slots that were taken."""
    curve = run.utilisation
    words = "Of the slots nothing is known."
    if curve.values:
        words = f"On average {_mean(curve, run.seconds):.0%} of the slots were taken."
    chart = Chart(
        About(name, f"{run.policy}: utilisation over time", words),
        Axis("seconds", 0, by.seconds),
        Axis("% of slots", 0, 100),
        height=200,
    )
    chart.area(Curve(curve.times, tuple(100 * value for value in curve.values)), "taken")
    chart.moment(run.until, "last arrival")
    return _figure(chart, run.policy, words)


def _figure(chart: Chart, policy: str, words: str) -> Element:
    return element("figure", element("h3", policy), chart.svg, element("figcaption", words))


def _weary(tenants: Sequence[TenantResult]) -> tuple[str, ...]:
    """The tenants that waited most, all their requests together: those whose share the order decides."""
    return tuple(
        tenant.tenant for tenant in sorted(tenants, key=lambda tenant: (-sum(tenant.waits), tenant.tenant))[:SHOWN]
    )


def _cumulative(values: Sequence[float]) -> Curve:
    found = Distribution.of(values)
    percents = range(1, 101)
    return Curve(tuple(map(found.percentile, percents)), tuple(map(float, percents)))


def _at(curve: Curve, time: float) -> float:
    """What a curve's value was at that time; 0 before its first."""
    place = bisect_right(curve.times, time)
    return curve.values[place - 1] if place else 0.0


def _mean(curve: Curve, until: float) -> float:
    """The mean of a curve's steps, the last of which lasts to the end."""
    lengths = [end - start for start, end in pairwise((*curve.times, max(until, curve.times[-1])))]
    whole = sum(lengths)
    return sum(map(mul, lengths, curve.values)) / whole if whole else curve.values[-1]


def _floor(value: float) -> float:
    return max(1.0, value / 1.5)


def _clipped(name: str) -> str:
    return name if len(name) <= 14 else f"{name[:13]}…"
