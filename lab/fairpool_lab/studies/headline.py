"""The headline of the VTC paper: how far apart do tenants' services get under which scheduler, there and here?

Sheng et al., "Fairness in Serving Large Language Models" (OSDI 2024), compare schedulers by Max Diff and Avg Diff on a
trace of an A10G's pool (`measures.service_difference` has the definition). The study plays the trace that the authors
published against the model of their engine, under their schedulers and under ours, at several numbers of slots.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import product
from typing import Final

import msgspec

from fairpool_lab.comparison import engines
from fairpool_lab.comparison.outcome import Outcome, measure
from fairpool_lab.comparison.setup import Setup
from fairpool_lab.errors import OptionInvalid
from fairpool_lab.policies import POLICIES
from fairpool_lab.report.chart import About, Axis
from fairpool_lab.simulation import simulate
from fairpool_lab.studies.drawing import rows
from fairpool_lab.studies.study import Given, Listed, Made, Traces, Walk, quietly
from fairpool_lab.traces import Trace

NAME: Final = "headline"
DRAWING: Final = "headline-max-diff.svg"
ENGINE: Final = "a10g"
SLOTS: Final = (12, 25, 50)
"""Fewer than fill the engine's memory, about as many, and twice as many."""

PUBLISHED: Final = (1_500, 27)
"""Requests and tenants of the trace that the authors published."""

AT_PAPERS: Final = 25
"""The number of slots that comes closest to their scheduler, which admits until the memory is full."""


class Scheduler(msgspec.Struct, frozen=True):
    """One line of the table: a policy, what estimates costs, and the paper's Max and Avg Diff if it has them."""

    title: str
    policy: str
    estimator: str = "TenantAverage"
    paper: tuple[int, int] | None = None


SCHEDULERS: Final = (
    Scheduler("first come, first served", "arrival-order", paper=(760, 434)),
    Scheduler("least counter first", "lcf", paper=(750, 324)),
    Scheduler("VTC", "vtc", paper=(368, 252)),
    Scheduler("VTC that knows answers' lengths", "vtc-oracle", paper=(329, 228)),
    Scheduler("SFQ", "sfq"),
    Scheduler("SFQ that knows answers' lengths", "sfq", estimator="oracle"),
)


class Figure(msgspec.Struct, frozen=True):
    """What one scheduler made of the trace with so many slots."""

    title: str
    slots: int
    greatest: float
    mean: float
    tokens_per_second: float
    exceeded: int
    pairs: int


class Study(msgspec.Struct, frozen=True):
    """All figures, and of how large a trace they are."""

    requests: int
    tenants: int
    figures: tuple[Figure, ...]


def check(trace: Trace) -> None:
    """See to it that this is the trace that the page's words are about.

    Raises:
        OptionInvalid: it is not.
    """
    if (len(trace), len({request.tenant for request in trace})) != PUBLISHED:
        raise OptionInvalid(
            f"--trace: this study is of the {PUBLISHED[0]:,} requests of {PUBLISHED[1]} clients in "
            "fair_bench/real_trace.pkl of github.com/Ying1123/VTC-artifact, as CSV"
        )


def study(trace: Trace, walk: Walk = quietly, slots: Sequence[int] = SLOTS) -> Study:
    """Measure."""
    figures = tuple(
        _figure(scheduler, number, _outcome(scheduler, number, trace))
        for number, scheduler in walk(
            tuple(product(slots, SCHEDULERS)), lambda part: f"{part[0]} slots, {part[1].title}"
        )
    )
    return Study(len(trace), len({request.tenant for request in trace}), figures)


def page(found: Study) -> str:
    """The study's page, from its figures."""
    return _WORDS.format(
        drawing=DRAWING,
        requests=f"{found.requests:,}",
        tenants=found.tenants,
        slots=AT_PAPERS,
        beside="\n".join(_beside_the_papers(found)),
        by_slots="\n".join(_by_slots(found)),
        tokens=", ".join(
            f"{each.tokens_per_second:,.0f} at {each.slots}" for each in found.figures if each.title == "SFQ"
        ),
    )


def drawing(found: Study) -> str:
    """Max Diff there and here, by scheduler."""
    here = {each.title: each.greatest for each in found.figures if each.slots == AT_PAPERS}
    papers = {each.title: float(each.paper[0]) for each in SCHEDULERS if each.paper}
    return rows(
        About(NAME, "Max Diff by scheduler, in the paper and here", "The figures are in the table of the page."),
        Axis("Max Diff, tokens per second", 0.0, 1.05 * max(*here.values(), *papers.values())),
        ("in the paper", "here"),
        [(title, (papers.get(title), value)) for title, value in here.items()],
        left=226,
    )


def _make(given: Sequence[Given], walk: Walk) -> Made:
    (of,) = given
    check(of.trace)
    found = study(of.trace, walk)
    return Made(found, page(found), {DRAWING: drawing(found)})


LISTED: Final = Listed(NAME, "the VTC paper's Max and Avg Diff, there and here", Traces.ONE, _make)


def _outcome(scheduler: Scheduler, slots: int, trace: Trace) -> Outcome:
    setup = Setup(
        trace=trace,
        engine=engines.named(ENGINE),
        endpoints=1,
        slots=slots,
        weights={},
        estimator=scheduler.estimator,
    )
    policy = POLICIES[scheduler.policy]
    return measure(policy, setup, simulate(setup.scenario(), policy.factory))


def _figure(scheduler: Scheduler, slots: int, outcome: Outcome) -> Figure:
    greatest, mean = outcome.greatest_service_difference, outcome.mean_service_difference
    assert greatest is not None
    assert mean is not None
    return Figure(scheduler.title, slots, greatest, mean, outcome.tokens_per_second, outcome.exceeded, outcome.pairs)


def _beside_the_papers(found: Study) -> Iterable[str]:
    here = {each.title: each for each in found.figures if each.slots == AT_PAPERS}
    for scheduler in SCHEDULERS:
        figure, paper = here[scheduler.title], scheduler.paper or ("", "")
        yield (
            f"| {scheduler.title} | {paper[0]} | {figure.greatest:.0f} | {paper[1]} | {figure.mean:.0f} "
            f"| {figure.exceeded:,} of {figure.pairs:,} |"
        )


def _by_slots(found: Study) -> Iterable[str]:
    slots = list(dict.fromkeys(each.slots for each in found.figures))
    yield f"| | {' | '.join(f'{number} slots' for number in slots)} |"
    yield f"|---|{'--:|' * len(slots)}"
    for scheduler in SCHEDULERS:
        of_each = (each for each in found.figures if each.title == scheduler.title)
        yield f"| {scheduler.title} | {' | '.join(f'{each.greatest:.0f} / {each.mean:.0f}' for each in of_each)} |"


_WORDS: Final = """\
# The headline of the VTC paper

Sheng et al. ("Fairness in Serving Large Language Models", OSDI 2024) sum up their comparison in two numbers, Max Diff
and Avg Diff: by how much tenants' service lags behind that of the one who got most, as far as they asked for more, in
windows of 60 s; in tokens per second, an output token counting twice. Less is fairer.

Here the trace that the authors published ({requests} requests of {tenants} tenants in 600 s) is played against the
model of their engine, Llama-7B on an A10G, under their schedulers and under SFQ.

```sh
fairpool lab study headline --trace vtc_real_trace.csv --out docs/studies
```

makes this page, in about a minute.

| scheduler | Max Diff, paper | Max Diff, here | Avg Diff, paper | Avg Diff, here | pairs beyond SFQ's bound |
|---|--:|--:|--:|--:|--:|
{beside}

![Max Diff of each scheduler, in the paper and here]({drawing})

As in the paper, first come, first served is worst, and least counter first as bad at its worst: who comes back late is
made up to for all that it missed. VTC is far better. SFQ comes close to it by these measures without looking into the
engine, and is the only one that keeps every pair within its bound over every interval. One thing is not as in the
paper: VTC gains nothing by knowing how long answers will be. SFQ does.

## Where the numbers differ

- The published trace is a re-sample; the authors say that it is not the one of the paper.
- Their scheduler sits inside the engine and admits until its memory is full. Ours is a gateway with slots, in front of
  an engine that keeps what it has admitted. The table above is of {slots} slots, which is about what fills the memory.
- Their engine is real. Ours is a model that was fitted to their own profile of it.

How much each does, the published figures cannot tell. The slots alone do this much (Max Diff / Avg Diff):

{by_slots}

With fewer slots than fill the memory the engine does less ({tokens} slots, in tokens per
second under SFQ): everybody waits longer, and first come, first served gets further from what is fair. With more than
fit, requests queue again inside the engine, in order of arrival, where no scheduler in front of it has a say. So: as
many slots as keep the engine full, and few more.
"""
