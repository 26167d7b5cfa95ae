"""What is said about a pool.

What always holds: only a refused spec or object, a name that is taken or a reference that cannot be used stalls a
pool; one without endpoints is healthy (it is scaled to zero). What its gateway says counts only while that gateway is
there. No edition is Ready before the gateway's pods are of it, and no address is named that is somebody else's.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from fairpool_operator.compile.aspects import ACCEPTED, GATEWAY, PROGRAMMED, RESOLVED, STALLING
from fairpool_operator.compile.facts import Facts
from fairpool_operator.compile.gateways import endpoints_finding, gateway_finding, lagging, live_report
from fairpool_operator.compile.objects import url_of
from fairpool_operator.compile.ownership import Standing
from fairpool_operator.compile.references import References
from fairpool_operator.compile.rollouts import Rollout
from fairpool_operator.compile.tenants import Judged
from fairpool_operator.errors import ConfigTooLarge
from fairpool_operator.resources import (
    EndpointCounts,
    FairPool,
    FairPoolStatus,
    Finding,
    GatewayReport,
    conditions,
    summarise,
)
from fairpool_operator.view import View

_NEEDED = (ACCEPTED, RESOLVED, GATEWAY, PROGRAMMED)


def pool_status(
    pool: FairPool, view: View, facts: Facts, tenants: Iterable[Judged], gateway: Rollout | None, now: datetime
) -> FairPoolStatus:
    """What is to be said about the pool, `gateway` being what its Deployment says."""
    report = live_report(pool, view)
    tenants = tuple(tenants)
    shares = [judged.settings.weight or 0 for judged in tenants if judged.settings is not None]
    left_out = sum(isinstance(judged.refused, ConfigTooLarge) for judged in tenants)
    found = (
        _accepted(facts, len(shares), left_out),
        _resolved(facts.references),
        endpoints_finding(report),
        gateway_finding(
            view,
            facts.owners,
            facts.taken,
            gateway,
            is_awaited=facts.gateway_is_awaited,
            is_leaving=facts.is_leaving,
        ),
        _programmed(facts, report, lagging(gateway, view)),
    )
    serves = f"Tenants are served at {url_of(pool)}."
    ready = "The pool is suspended: every request is refused." if pool.spec.suspend else serves
    summed_up = summarise(found, needed=_NEEDED, stalling=STALLING, ready_message=ready)
    return FairPoolStatus(
        observed_generation=pool.metadata.generation,
        conditions=conditions(summed_up, before=pool.status.conditions, generation=pool.metadata.generation, now=now),
        url=None if facts.owners.of("Service") is Standing.FOREIGN else url_of(pool),
        endpoints=report
        and EndpointCounts(
            ready=report.endpoints_ready, total=report.endpoints_total, draining=report.endpoints_draining
        ),
        accelerators=report and report.accelerators,
        tenants=len(shares),
        total_weight=sum(shares),
        config_hash=facts.packed.hash if facts.packed else pool.status.config_hash,
    )


def _accepted(facts: Facts, tenants: int, left_out: int) -> Finding:
    refused = facts.refused or facts.taken or facts.rejected
    if refused is not None:
        return Finding(ACCEPTED, holds=False, reason=refused.reason, message=str(refused))
    if facts.delayed:
        message = f"Not all that the pool needs can be written just now. {facts.delayed}"
        return Finding(ACCEPTED, holds=None, reason="ObjectPending", message=message)
    share = "1 tenant shares" if tenants == 1 else f"{tenants} tenants share"
    beyond = f" {left_out} more, of other namespaces, have no room in its configuration: divide it." if left_out else ""
    return Finding(ACCEPTED, holds=True, reason="Accepted", message=f"{share} the pool.{beyond}")


def _resolved(references: References) -> Finding:
    if references.problems:
        message = " ".join(map(str, references.problems))
        return Finding(RESOLVED, holds=False, reason=references.problems[0].reason, message=message)
    return Finding(RESOLVED, holds=True, reason="Resolved", message="Every Secret that the pool names can be used.")


def _programmed(facts: Facts, report: GatewayReport | None, lagging: Finding | None) -> Finding:
    if facts.packed is None:
        reason = facts.refused.reason if facts.refused else "ReferencesNotResolved"
        message = "The gateway keeps its last configuration until the pool is accepted and its references are resolved."
        return Finding(PROGRAMMED, holds=False, reason=reason, message=message)
    if report is None:
        message = "No gateway says yet which configuration it uses."
        return Finding(PROGRAMMED, holds=None, reason="GatewayNotReporting", message=message)
    if report.config_hash != facts.packed.hash:
        message = "The gateway does not use the newest configuration yet."
        return Finding(PROGRAMMED, holds=None, reason="Pending", message=message)
    if lagging is not None:
        return lagging
    return Finding(PROGRAMMED, holds=True, reason="Programmed", message="The gateway uses the newest configuration.")
