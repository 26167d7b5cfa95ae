"""Policies without a pool: jobs of known size, a policy that sees them, and one slot that serves to the end."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from fairpool_gateway.sfq import Decision
from fairpool_lab.policies import Policy, Sight


class Job(NamedTuple):
    """A request as a policy sees it. `name` tells it apart from its like."""

    name: str
    input_tokens: int
    output_tokens: int = 0
    cached: int = 0

    @property
    def cost(self) -> int:
        return self.input_tokens + 2 * self.output_tokens


SIGHT = Sight[Job](
    input_tokens=lambda job: job.input_tokens,
    output_tokens=lambda job: job.output_tokens,
    cached=lambda job: job.cached,
)


def policy_of(
    factory: Callable[..., Any], weights: dict[str, int] | None = None, *, default_weight: int = 1, **settings: Any
) -> Policy[Job]:
    """A policy over jobs."""
    made: Policy[Job] = factory(
        lambda job: job.cost,
        weights=weights or {},
        default_weight=default_weight,
        max_tenants=100,
        sight=SIGHT,
        **settings,
    )
    return made


def queue(policy: Policy[Job], tenant: str, *jobs: Job) -> None:
    for job in jobs:
        policy.arrive(tenant, job)


def serve(policy: Policy[Job], job: Job) -> None:
    """Compute all of a dispatched job, and end it."""
    policy.progressed(job, job.input_tokens - job.cached, 0)
    policy.progressed(job, 0, job.output_tokens)
    policy.finished(job)


def served_in_turn(policy: Policy[Job], most: int = 1000) -> list[Decision[Job]]:
    """What one slot serves, each job to its end before the next, until nobody goes or there were `most`."""
    decisions: list[Decision[Job]] = []
    while len(decisions) < most and (decision := policy.dispatch()) is not None:
        serve(policy, decision.request)
        decisions.append(decision)
    return decisions


def names(decisions: Iterable[Decision[Job]]) -> list[str]:
    return [decision.request.name for decision in decisions]


def tenants(decisions: Iterable[Decision[Job]]) -> str:
    return "".join(decision.tenant for decision in decisions)
