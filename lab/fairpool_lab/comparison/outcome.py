"""What one policy made of a demand, in figures: all of them by the lab's measures, from the run's events alone.

Shares are in the tokens that requests really used, whatever was estimated, and are compared at the last arrival.
Waits count over the whole run.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from fairpool_lab.comparison.setup import Setup
from fairpool_lab.measures import gap, history, jain, load, occupancy, served, service_difference, shares, waits
from fairpool_lab.measures.distribution import Distribution
from fairpool_lab.policies import Listed
from fairpool_lab.simulation import End, Run


@dataclass(frozen=True, slots=True)
class Spread:
    """How a figure is spread over requests."""

    p50: float
    p99: float

    @classmethod
    def of(cls, distribution: Distribution | None) -> Spread | None:
        """That of a distribution; None where no request has the figure."""
        return None if distribution is None else cls(distribution.p50, distribution.p99)

    @classmethod
    def of_all(cls, tenants: Mapping[str, Distribution]) -> Spread | None:
        """That over all tenants' requests."""
        values = [value for distribution in tenants.values() for value in distribution.values]
        return cls.of(Distribution.of(values) if values else None)


@dataclass(frozen=True, slots=True)
class TenantOutcome:
    """What one tenant got.

    Attributes:
        tenant: its name.
        weight: its weight at the end.
        requests: how many arrived.
        completed: how many of them were answered in full.
        cancelled: how many its clients took back.
        refused: how many were refused.
        entitled: tokens that the fluid reference gave it until the last arrival.
        received: tokens of the requests that were dispatched until then.
        entitled_share: the first as a part of all tokens.
        received_share: the second.
        wait: from arrival to dispatch; None if none was dispatched.
        drought: the longest that it stayed backlogged without a dispatch, in seconds.
        first_token: from arrival to the first token; None if none came.
        slowdown: how many times longer its answers took, from arrival to the last token, than in an idle engine.
    """

    tenant: str
    weight: int
    requests: int
    completed: int
    cancelled: int
    refused: int
    entitled: float
    received: int
    entitled_share: float
    received_share: float
    wait: Spread | None
    drought: float
    first_token: Spread | None
    slowdown: Spread | None


@dataclass(frozen=True, slots=True)
class Outcome:
    """One policy's run.

    Attributes:
        policy: its name.
        source: where it comes from.
        seconds: how long the run took on its own clock.
        until: when the last request arrived.
        requests: how many arrived.
        completed: how many were answered in full.
        tokens_per_second: cost that was completed in a second.
        utilisation: the part of the slots that was taken while somebody waited.
        greatest_difference: the greatest of the tenants' `|received - entitled|`, as a part of all tokens.
        jain: Jain's index of received over entitled.
        gap_over_bound: the greatest gap between two backlogged tenants over its bound, in charges; None without one.
        pairs: how many ordered pairs of tenants were compared for it.
        exceeded: how many of them exceeded their bound.
        greatest_service_difference: the VTC paper's Max Diff until the last arrival; None in less than its window.
        mean_service_difference: its Avg Diff.
        first_token: from arrival to the first token, over all requests.
        slowdown: how many times longer answers took than in an idle engine, over all requests.
        cached_share: the part of prompts that prefix caches had.
        tenants: what each got, who was entitled to most first.
    """

    policy: str
    source: str
    seconds: float
    until: float
    requests: int
    completed: int
    tokens_per_second: float
    utilisation: float
    greatest_difference: float
    jain: float
    gap_over_bound: float | None
    pairs: int
    exceeded: int
    greatest_service_difference: float | None
    mean_service_difference: float | None
    first_token: Spread | None
    slowdown: Spread | None
    cached_share: float
    tenants: tuple[TenantOutcome, ...]


def measure(policy: Listed, setup: Setup, run: Run) -> Outcome:
    """Take all figures of a run."""
    events = run.log.events
    use = history.really_used(setup.cost.input_weight, setup.cost.output_weight)
    got = shares.shares(run.log, measure=use)
    done = load.throughput(events, use)
    gaps = gap.measure(events)
    answers = run.served()
    weights = {tenant.tenant: tenant.weight for tenant in got.tenants}
    began = events[0].t if events else 0.0
    differences = service_difference.of_run(answers, weights, began=began, until=got.until)
    prompts = sum(request.computed + request.cached for request in run.requests)
    return Outcome(
        policy=policy.name,
        source=policy.source,
        seconds=run.seconds,
        until=got.until,
        requests=len(run.requests),
        completed=run.ended(End.COMPLETED),
        tokens_per_second=done.tokens_per_second,
        utilisation=occupancy.occupancy(events).utilisation_while_waiting(setup.endpoints * setup.slots),
        greatest_difference=got.greatest_difference,
        jain=jain.of_shares(got),
        gap_over_bound=max((pair.tightest.ratio for pair in gaps.pairs), default=None),
        pairs=len(gaps.pairs),
        exceeded=gaps.exceeded,
        greatest_service_difference=None if differences is None else differences.greatest,
        mean_service_difference=None if differences is None else differences.mean,
        first_token=Spread.of_all(served.first_tokens(answers)),
        slowdown=Spread.of_all(served.slowdowns(answers, setup.alone)),
        cached_share=sum(request.cached for request in run.requests) / prompts if prompts else 0.0,
        tenants=_tenants(run, setup, got),
    )


def _tenants(run: Run, setup: Setup, got: shares.Shares) -> tuple[TenantOutcome, ...]:
    ends = Counter((request.tenant, request.end) for request in run.requests)
    waited, dry = waits.waits(run.log.events), waits.droughts(run.log.events)
    first, slower = served.first_tokens(run.served()), served.slowdowns(run.served(), setup.alone)
    found = [
        TenantOutcome(
            tenant=each.tenant,
            weight=each.weight,
            requests=sum(ends[each.tenant, end] for end in End),
            completed=ends[each.tenant, End.COMPLETED],
            cancelled=ends[each.tenant, End.CANCELLED],
            refused=ends[each.tenant, End.REFUSED],
            entitled=each.entitled,
            received=each.received,
            entitled_share=each.entitled_share,
            received_share=each.received_share,
            wait=Spread.of(waited.get(each.tenant)),
            drought=dry.get(each.tenant, 0.0),
            first_token=Spread.of(first.get(each.tenant)),
            slowdown=Spread.of(slower.get(each.tenant)),
        )
        for each in (*got.tenants, *_never_let_in(run, got))
    ]
    return tuple(sorted(found, key=lambda each: (-each.entitled, each.tenant)))


def _never_let_in(run: Run, got: shares.Shares) -> Iterator[shares.TenantShare]:
    """Tenants whose every request was refused at the door, of which no decision tells."""
    header = run.log.header
    for tenant in {request.tenant for request in run.requests} - {each.tenant for each in got.tenants}:
        weight = header.weights.get(tenant, header.default_weight)
        yield shares.TenantShare(tenant, weight, 0, 0, 0.0, 0, 0.0, 0.0)
