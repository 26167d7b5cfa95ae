"""Tenants for a trace that names none: its conversations are dealt to so many, some of whom get more than others.

A request goes on with a conversation if at least half of its prompt's blocks, counted from the front, have been seen:
it belongs to whom the last of these was dealt. All others are conversations of their own. This is a guess about whose
requests they are, and so are the tenants; times, tokens and prompts stay as they were.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from random import Random

from fairpool_lab.traces.request import Trace, TraceRequest


def dealt(trace: Iterable[TraceRequest], tenants: int, chance: Random) -> Trace:
    """Deal a trace to tenants `t1`, `t2` and so on, of whom the kth gets 1/k of what the first gets, on average."""
    names = [f"t{number}" for number in range(1, tenants + 1)]
    parts = [1 / number for number in range(1, tenants + 1)]
    owners: dict[int, str] = {}
    found = []
    for request in trace:
        owner = _going_on(request, owners) or chance.choices(names, parts)[0]
        for block in request.prefix:
            owners.setdefault(block, owner)
        found.append(replace(request, tenant=owner))
    return tuple(found)


def _going_on(request: TraceRequest, owners: dict[int, str]) -> str | None:
    """Whose conversation this goes on with, if it does. A block's name stands for all of the prompt before it too."""
    seen = 0
    while seen < len(request.prefix) and request.prefix[seen] in owners:
        seen += 1
    return owners[request.prefix[seen - 1]] if seen and 2 * seen >= len(request.prefix) else None
