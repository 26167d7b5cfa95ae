"""The study's page, from its figures."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from fairpool_lab.report.chart import About, Axis
from fairpool_lab.report.report import Curve
from fairpool_lab.studies.bound.figures import Study, Verdict
from fairpool_lab.studies.bound.measured import (
    COMPARED,
    CONTROL,
    DRAWN,
    ESTIMATORS,
    PATIENCE,
    SERVED,
    SERVED_OF_WINDOW,
    SLOTS,
    WINDOW,
)
from fairpool_lab.studies.drawing import lines
from fairpool_lab.studies.study import DEALT

DRAWING: Final = "bound-completed.svg"


def page(found: Study) -> str:
    """The whole page."""
    return _WORDS.format(
        files=" \\\n  ".join(each.trace for each in found.traces),
        drawing=DRAWING,
        requests=f"{sum(each.requests for each in found.traces):,}",
        number=len(found.traces),
        slots=SLOTS,
        served=f"{100 * SERVED:.0f} %",
        dealt=DEALT,
        patience=f"{PATIENCE:g}",
        control=f"{CONTROL:,}",
        traces="\n".join(_traces(found)),
        adversaries="\n".join(_adversaries(found)),
        attempts="\n".join(f"- *{each.name}*: {each.attempt}" for each in found.adversaries),
        drawn=DRAWN,
        window=f"{WINDOW:,}",
        served_of_window=f"{100 * SERVED_OF_WINDOW:.0f} %",
        completed="\n".join(_completed(found)),
        broken="\n".join(_broken(found)),
    )


def drawing(found: Study) -> str:
    """Gaps in completed work over their bound, by slots."""
    slots = tuple(float(each.slots) for each in found.completed)
    curves = [(name, Curve(slots, tuple(each.traces[name].ratio for each in found.completed))) for name in ESTIMATORS]
    curves.append(("worst order, oracle", Curve(slots, tuple(each.held_back for each in found.completed))))
    highest = max(1.0, *(value for _, curve in curves for value in curve.values))
    return lines(
        About("completed", "Gap over bound in completed work, by slots", "The figures are in the table of the page."),
        Axis("slots", slots[0], slots[-1], logarithmic=True),
        Axis("gap / bound", 0.0, 1.05 * highest),
        curves,
        level=1.0,
    )


def _traces(found: Study) -> Iterable[str]:
    for each in found.traces:
        yield (
            f"| {each.trace}{' (dealt)' if each.dealt else ''} | {each.requests:,} | {each.tenants} "
            f"| {_verdict(each.fair)} | {_verdict(each.impatient)} | {each.left:,} | {_verdict(each.in_order)} |"
        )


def _adversaries(found: Study) -> Iterable[str]:
    for each in found.adversaries:
        yield f"| {each.name} | {' | '.join(_verdict(each.verdicts[policy]) for policy in COMPARED)} |"
    yield f"| {DRAWN} drawn by chance | {' | '.join(_verdict(found.drawn[policy]) for policy in COMPARED)} |"


def _completed(found: Study) -> Iterable[str]:
    for each in found.completed:
        traces = " | ".join(written(each.traces[name].ratio) for name in ESTIMATORS)
        yield f"| {each.slots} | {traces} | {written(each.held_back)} |"


def _broken(found: Study) -> Iterable[str]:
    for name in ESTIMATORS:
        for each in found.completed:
            verdict = each.traces[name]
            if verdict.exceeded:
                slots = f"{each.slots} slot{'s' * (each.slots > 1)}"
                yield f"- {name}, {slots}: {verdict.exceeded:,} of {verdict.pairs:,} pairs beyond it"


def _verdict(verdict: Verdict) -> str:
    """The greatest ratio, and how many of the pairs exceeded their bound."""
    return f"{written(verdict.ratio)}; {verdict.exceeded:,} of {verdict.pairs:,}"


def written(ratio: float) -> str:
    """A ratio that is never rounded across 1."""
    if ratio > 1:
        return f"{max(ratio, 1.01):,.2f}" if ratio < 100 else f"{ratio:,.0f}"
    return f"{ratio:.2f}" if ratio in {0, 1} or ratio < 0.995 else "0.99"


_WORDS: Final = """\
# The bound

While two tenants are both backlogged, neither gets further ahead of the other than the last request of each: over every
interval, `N_i - N_j <= l_i + l_j` in charges. Is that so on real traffic, and whatever is tried against it?

```sh
fairpool lab study bound --out docs/studies --trace \\
  {files}
```

makes this page, in about two minutes of one core. Every ordered pair of tenants counts, over every interval in which
both stay backlogged. A cell says how close a gap came to its bound at most (gap ÷ bound; 1 is the bound itself), and
how many of the pairs got beyond it.

## Traces

{requests} requests of {number} traces. Each is played against {slots} slots that can serve {served} of what it asks
for, so that tenants wait, at the weights 4, 2 and 1 in turn, with the gateway's own estimates. What is compared is what
was charged. So that tenants come and go more often, the same is played with clients that leave when a request, waiting
and served, has taken {patience} times as long as requests hold their slots on average. Order of arrival shows what the
measure says of an order that is not fair; it is of the first {control} requests of each trace.

| trace | requests | tenants | SFQ | SFQ, clients leave | left | order of arrival |
|---|--:|--:|--:|--:|--:|--:|
{traces}

No pair gets beyond its bound under SFQ. Some reach it: two requests are no cautious estimate, they do happen.

The traces are those of the VTC paper (github.com/Ying1123/VTC-artifact), of Azure (github.com/Azure/AzurePublicDataset)
and of Mooncake (github.com/kvcache-ai/Mooncake), and three that were drawn from the rates and lengths which ServeGen
has published of each client (github.com/alibaba/ServeGen): these are no logs of requests. Those of Azure and Mooncake
name no tenants and are dealt to {dealt}.

## Adversaries

| | SFQ | VTC | least counter first | order of arrival |
|---|--:|--:|--:|--:|
{adversaries}

{attempts}
- *{drawn} drawn by chance*: two to six tenants with sizes and weights of several magnitudes, on one to eight slots,
  with clients that pause and leave, weights that change, and any of the estimators

SFQ keeps its bound on all of them. The others never promised to keep it, and each gets beyond it on some. The names
are two hundred and not thousands because all of their pairs are measured: a thousand take most of a minute for each
order.

## Completed work

What is charged at dispatch is completed later. With D slots the gap in true cost completed is at most
`(D + 1) (c_i/w_i + c_j/w_j)`, `c` being the greatest cost of each tenant, if estimates are true. The first {window}
requests of each trace are played against D slots that together serve {served_of_window} of what these ask for, with
costs known in advance (oracle) and with the gateway's two estimators. In the last column is an engine that completes in
the worst order there is: it holds back one tenant's requests until they have all slots, lets them go, and then holds
back the other's.

| slots | oracle | TenantAverage | MaxTokensRatio | worst order, oracle |
|--:|--:|--:|--:|--:|
{completed}

![How close the gap in completed work came to its bound, by the number of slots]({drawing})

With costs known in advance the bound holds at any number of slots. On traces the gap stays well below it. The adverse
engine shows that no lower bound could be promised: the more slots, the closer it comes.

With estimates nothing is promised, for what a request costs beyond its estimate is completed and was never charged.
Where slots are few that shows:

{broken}

With more slots the bound is so wide that the errors of estimates stay within it.
"""
