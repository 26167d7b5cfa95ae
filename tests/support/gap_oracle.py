"""The gap by its definition: every pair, every interval, nothing clever."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import permutations

from fairpool_gateway.decision_log import Arrive, Dispatch, Remove
from fairpool_lab.decisions import Event
from fairpool_lab.measures.gap import Gap


def intervals(events: Sequence[Event]) -> list[Gap]:
    """The gap and the bound of every ordered pair over every interval in which both stay backlogged.

    An interval covers the events after number `after` through number `upto`; both tenants are backlogged after each
    of its events, but perhaps the last, and before the first.
    """
    tenants = sorted({event.tenant for event in events if isinstance(event, Arrive)})
    waiting: Counter[str] = Counter()
    charged: Counter[str] = Counter()
    last: Counter[str] = Counter()
    states = []
    for event in events:
        match event:
            case Arrive(tenant=tenant):
                waiting[tenant] += 1
            case Remove(tenant=tenant):
                waiting[tenant] -= 1
            case Dispatch(tenant=tenant, charge=charge):
                waiting[tenant] -= 1
                charged[tenant] += charge
                last[tenant] = charge
        states.append((dict(waiting), dict(charged), dict(last)))

    found = []
    for ahead, behind in permutations(tenants, 2):
        for after, (_, charged_before, last_before) in enumerate(states):
            for upto in range(after, len(states)):
                queues = states[upto][0]
                if upto > after:
                    _, charged_then, last_then = states[upto]
                    gained = charged_then.get(ahead, 0) - charged_before.get(ahead, 0)
                    gap = gained - (charged_then.get(behind, 0) - charged_before.get(behind, 0))
                    bound = last_then.get(ahead, 0) + last_before.get(behind, 0)
                    found.append(Gap(ahead, behind, after, upto, gap, bound))
                if not (queues.get(ahead) and queues.get(behind)):
                    break
    return found
