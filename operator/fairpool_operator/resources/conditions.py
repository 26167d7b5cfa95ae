"""Conditions, so that people, kubectl and GitOps tools read the state of a resource the same way.

The rules are kstatus': a resource is Current when it is Ready, InProgress while it is not, and Failed when it is
Stalled, which is said only while it is true, of a resource that stays refused until somebody changes something. What
always holds: every condition names the generation that it was made from, and its time moves only when its status does,
so that the same findings about the same resource give the same conditions. One that names none is the definition's
default, which nobody said at any time.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from fairpool_operator.resources.status import Condition

READY: Final = "Ready"
STALLED: Final = "Stalled"

_LONGEST_MESSAGE: Final = 4096


@dataclass(frozen=True, slots=True)
class Finding:
    """What was found about one aspect of a resource: whether it is so (None: not known yet), and why."""

    type: str
    holds: bool | None
    reason: str
    message: str


def summarise(
    findings: Sequence[Finding], *, needed: Collection[str], stalling: Collection[str], ready_message: str
) -> tuple[Finding, ...]:
    """The findings, with Ready as the worst of those that are `needed`, and Stalled if one of `stalling` is false.

    The first that is false speaks for all, for those after it usually follow from it; then the first that is not known.
    """
    worst = _first(findings, needed, holds=False) or _first(findings, needed, holds=None)
    ready = (
        Finding(READY, worst.holds, worst.reason, worst.message)
        if worst
        else Finding(READY, holds=True, reason="Ready", message=ready_message)
    )
    refused = _first(findings, stalling, holds=False)
    stalled = [Finding(STALLED, holds=True, reason=refused.reason, message=refused.message)] if refused else []
    return (*findings, ready, *stalled)


def conditions(
    findings: Iterable[Finding], *, before: Iterable[Condition], generation: int, now: datetime
) -> tuple[Condition, ...]:
    """The findings as conditions, with the times of those `before` whose status is the same."""
    known = {condition.type: condition for condition in before if condition.observed_generation is not None}
    return tuple(_condition(finding, known.get(finding.type), generation, now) for finding in findings)


def _condition(finding: Finding, before: Condition | None, generation: int, now: datetime) -> Condition:
    status, message = _STATUS[finding.holds], _shortened(finding.message)
    said = (status, generation, finding.reason, message)
    if before and said == (before.status, before.observed_generation, before.reason, before.message):
        return before
    return Condition(
        type=finding.type,
        status=status,
        observed_generation=generation,
        last_transition_time=before.last_transition_time if before and before.status == status else _written(now),
        reason=finding.reason,
        message=message,
    )


_STATUS: Final = {True: "True", False: "False", None: "Unknown"}


def _first(findings: Iterable[Finding], types: Collection[str], *, holds: bool | None) -> Finding | None:
    return next((found for found in findings if found.type in types and found.holds is holds), None)


def _written(instant: datetime) -> str:
    """To the second, as Kubernetes writes instants."""
    return instant.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _shortened(message: str) -> str:
    return message if len(message) <= _LONGEST_MESSAGE else message[: _LONGEST_MESSAGE - 4] + " ..."
