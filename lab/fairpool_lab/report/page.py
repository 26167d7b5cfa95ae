"""The report as one HTML page that needs nothing else: no network, no script, and text beside every chart."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final
from xml.etree.ElementTree import Element

from fairpool_lab.measures.distribution import Distribution
from fairpool_lab.report import charts
from fairpool_lab.report.charts import Scales
from fairpool_lab.report.markup import document, element
from fairpool_lab.report.report import PolicyRun, Report, TenantResult
from fairpool_lab.report.scales import seconds, times
from fairpool_lab.report.style import style

_NOTHING_FROM_ELSEWHERE: Final = "default-src 'none'; style-src 'unsafe-inline'"

_Draw = Callable[[PolicyRun, Scales, str], Element]


def page(report: Report) -> str:
    """The whole page."""
    by = charts.scales(report)
    sections = (
        _section(
            report, "service", "Service over time", charts.service, by,
            "Tokens that each tenant had received, over its weight. While tenants wait, a fair order keeps their lines "
            "together; a tenant that asks for less lies below.",
            _legend([*_tenants(by), ("line pale", "other tenants")]),
        ),
        _section(
            report, "gaps", "Gaps against their bound", charts.distances, by,
            "How far one tenant got ahead of another while both waited: of all pairs and all intervals that end at "
            "that time the worst, with the bound of that pair. The bound is SFQ's; no other order promises it.",
            _legend([("line gap", "greatest gap"), ("line bound", "its bound"), ("beyond", "beyond the bound")]),
        ),
        _section(
            report, "waits", "Waits", charts.waits, by,
            "How many requests waited at most so long for a slot; the higher a line, the shorter the waits.",
            _legend([*_tenants(by), ("line all", "all requests")]),
        ),
        _section(
            report, "shares", "Entitled and received", charts.shares, by,
            "What a fluid share by weight would have given each tenant until the last arrival, and what it received.",
            _legend([("entitled", "due"), ("received", "received"), ("short", "too little"), ("over", "too much")]),
        ),
        _section(
            report, "utilisation", "Utilisation", charts.utilisation, by,
            "The part of all slots that were taken. A slot that is free while somebody waits is lost.",
            None,
        ),
    )  # fmt: skip
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", http_equiv="Content-Security-Policy", content=_NOTHING_FROM_ELSEWHERE),
        element("title", report.title),
        element("style", style()),
    )
    body = element("body", element("header", *_opening(report)), element("main", *sections, _every_tenant(report)))
    return document(element("html", head, body, lang="en"))


def _opening(report: Report) -> Iterable[Element]:
    yield element("h1", report.title)
    about = [part for name, value in report.about for part in (element("dt", name), element("dd", value))]
    yield element("dl", *about)
    if any(run.figures for run in report.runs):
        yield _figures(report.runs)
    links = (("service", "Service"), ("gaps", "Gaps"), ("waits", "Waits"), ("shares", "Shares"),
             ("utilisation", "Utilisation"), ("tenants", "Every tenant"))  # fmt: skip
    yield element(
        "nav",
        element("ul", *(element("li", element("a", words, href=f"#{name}")) for name, words in links)),
        aria_label="Sections",
    )


def _figures(runs: Sequence[PolicyRun]) -> Element:
    """A row for each figure, a column for each policy."""
    names = dict.fromkeys(name for run in runs for name, _ in run.figures)
    rows = [[name, *(dict(run.figures).get(name, "") for run in runs)] for name in names]
    return _table("In figures", ["", *(run.policy for run in runs)], rows)


def _section(
    report: Report, name: str, title: str, draw: _Draw, by: Scales, words: str, legend: Element | None
) -> Element:
    drawn = (draw(run, by, f"{name}-{place}") for place, run in enumerate(report.runs))
    return element(
        "section",
        element("h2", title, id=f"{name}-heading"),
        element("p", words),
        legend,
        element("div", *drawn, class_="side-by-side"),
        id=name,
        aria_labelledby=f"{name}-heading",
    )


def _every_tenant(report: Report) -> Element:
    """All tenants' figures, a table for each policy."""
    tables = (
        element(
            "details",
            element("summary", f"{run.policy}: {len(run.tenants):,} tenants"),
            element("p", run.source) if run.source else None,
            _table(
                run.policy,
                ["tenant", "weight", "requests", "dispatched", "entitled", "received", "wait p50", "wait p99",
                 "first token p50", "first token p99", "slower p50", "slower p99"],
                [_row(tenant) for tenant in run.tenants],
            ),
            open="" if len(report.runs) == 1 else None,
        )
        for run in report.runs
    )  # fmt: skip
    return element("section", element("h2", "Every tenant", id="tenants-heading"), *tables, id="tenants")


def _row(tenant: TenantResult) -> list[str]:
    return [
        tenant.tenant,
        str(tenant.weight),
        f"{tenant.requests:,}",
        f"{len(tenant.waits):,}",
        f"{tenant.entitled_share:.2%}",
        f"{tenant.received_share:.2%}",
        *_middle_and_tail(tenant.waits),
        *_middle_and_tail(tenant.first_tokens),
        *_middle_and_tail(tenant.slowdowns, times),
    ]


def _middle_and_tail(values: Sequence[float], written: Callable[[float], str] = seconds) -> tuple[str, str]:
    if not values:
        return "-", "-"
    found = Distribution.of(values)
    return written(found.p50), written(found.p99)


def _table(caption: str, head: Sequence[str], rows: Iterable[Sequence[str]]) -> Element:
    body = (
        element("tr", element("th", row[0], scope="row"), *(element("td", cell) for cell in row[1:])) for row in rows
    )
    return element(
        "div",
        element(
            "table",
            element("caption", caption),
            element("thead", element("tr", *(element("th", name, scope="col") for name in head))),
            element("tbody", *body),
        ),
        class_="scroll",
        tabindex=0,
        role="region",
        aria_label=caption,
    )


def _tenants(by: Scales) -> list[tuple[str, str]]:
    return [(f"line tenant-{place}", tenant) for place, tenant in enumerate(by.shown)]


def _legend(entries: Sequence[tuple[str, str]]) -> Element:
    """What each look of a line or a mark stands for."""
    return element("ul", *(element("li", _swatch(look), words) for look, words in entries), class_="legend")


def _swatch(look: str) -> Element:
    if look in {"received", "beyond"}:
        mark = element("circle", cx=16, cy=6, r=4.5, class_=look)
    else:
        mark = element("path", d="M16 0v12" if look == "entitled" else "M0 6H32", class_=look)
    return element("svg", mark, viewBox="0 0 32 12", aria_hidden="true")
