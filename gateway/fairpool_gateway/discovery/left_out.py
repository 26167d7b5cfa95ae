"""What is missing among the endpoints, and why: whole pods, and single endpoints of pods.

What always holds: whatever is left out says how many endpoints are missing for it, so that these and those that may be
given work are as many as there are in all.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

_SHOWN: Final = 5


@dataclass(frozen=True, slots=True, order=True)
class LeftOut:
    """A pod that is no endpoint at all, or one endpoint that is missing.

    Attributes:
        why: the reason, as it is said of pods and endpoints.
        pod: the pod's name.
        port: the port of the endpoint, by number or name; empty: the whole pod is meant.
        endpoints: how many endpoints are missing for that; none where nobody waits for the pod.
    """

    why: str
    pod: str
    port: str = ""
    endpoints: int = 1

    @property
    def name(self) -> str:
        """What people call it."""
        return f"{self.pod}:{self.port}" if self.port else self.pod


def pods_by_reason(left_out: Iterable[LeftOut]) -> dict[str, int]:
    """How many pods are left out, wholly or in part, for each reason."""
    pods: dict[str, set[str]] = {}
    for each in left_out:
        pods.setdefault(each.why, set()).add(each.pod)
    return {why: len(names) for why, names in pods.items()}


def in_words(left_out: Iterable[LeftOut], most: int) -> str:
    """Who is left out and why, in at most so many characters; of a longer text the longest parts are last, and cut."""
    reasons: dict[str, list[LeftOut]] = {}
    for each in left_out:
        reasons.setdefault(each.why, []).append(each)
    parts = [_part(why, group) for why, group in reasons.items()]
    text = "; ".join(parts)
    return text if len(text) <= most else "; ".join(sorted(parts, key=len))[: most - 1] + "…"


def _part(why: str, group: list[LeftOut]) -> str:
    """One reason, how many it concerns, and some of their names."""
    missing = sum(each.endpoints for each in group)
    if group[0].port:
        counted = _number(len(group), "endpoint")
    else:
        of_pods = f" ({_number(missing, 'endpoint')})" if missing not in {0, len(group)} else ""
        counted = _number(len(group), "pod") + of_pods
    more = f" and {len(group) - _SHOWN} more" if len(group) > _SHOWN else ""
    return f"{counted} {why}: {', '.join(each.name for each in group[:_SHOWN])}{more}"


def _number(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"
