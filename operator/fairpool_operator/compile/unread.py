"""What is said about resources that this operator cannot read, for the definitions in the cluster are not its own."""

from __future__ import annotations

from datetime import datetime

from fairpool_operator.compile.aspects import ACCEPTED
from fairpool_operator.errors import Unreadable
from fairpool_operator.resources import Condition, FairPoolStatus, Finding, TenantWeightStatus, conditions, summarise
from fairpool_operator.view import Unread


def unread_pool(unread: Unread, now: datetime) -> FairPoolStatus:
    """What is to be said about a FairPool; its gateway goes on as it is."""
    return FairPoolStatus(observed_generation=unread.metadata.generation, conditions=_conditions(unread, now))


def unread_weight(unread: Unread, now: datetime) -> TenantWeightStatus:
    """What is to be said about a TenantWeight."""
    return TenantWeightStatus(observed_generation=unread.metadata.generation, conditions=_conditions(unread, now))


def _conditions(unread: Unread, now: datetime) -> tuple[Condition, ...]:
    refused = Finding(ACCEPTED, holds=False, reason=Unreadable.reason, message=unread.problem)
    summed_up = summarise([refused], needed=[ACCEPTED], stalling=[ACCEPTED], ready_message="")
    return conditions(summed_up, before=unread.conditions, generation=unread.metadata.generation, now=now)
