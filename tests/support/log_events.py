"""Event sequences of a decision log, in any order of dispatch, fair or not, for the measures that read it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from hypothesis import strategies as st

from fairpool_gateway.cost import Used
from fairpool_gateway.decision_log import Arrive, Complete, Dispatch, Header, Remove, Reset, Weight
from fairpool_gateway.sfq import charge
from fairpool_lab.decisions import Event, Log

TENANTS = ("a", "b", "c")


class Step(NamedTuple):
    """One thing that happens; `place` chooses among the requests that wait. What cannot happen is skipped."""

    kind: str
    tenant: str
    size: int
    place: int


steps = st.lists(
    st.builds(
        Step,
        kind=st.sampled_from(["arrive", "arrive", "dispatch", "dispatch", "remove", "reweigh"]),
        tenant=st.sampled_from(TENANTS),
        size=st.integers(1, 12),
        place=st.integers(0, 5),
    ),
    max_size=40,
)


def log_of(steps: Sequence[Step]) -> Log:
    """The log of these steps, a second apart; a request is charged at its dispatch for what that step says."""
    weights = dict.fromkeys(TENANTS, 1)
    header = Header(q=1 << 32, pool="any", default_weight=1, weights=dict(weights))
    waiting: dict[str, list[str]] = {tenant: [] for tenant in TENANTS}
    events: list[Event] = []
    for step in steps:
        seq, tenant = len(events), step.tenant
        t, weight, queue = float(seq), weights[step.tenant], waiting[step.tenant]
        if step.kind == "arrive":
            queue.append(f"r{seq}")
            events.append(Arrive(seq, t, tenant, weight, f"r{seq}", step.size))
        elif step.kind == "reweigh":
            weights[tenant] = step.size
            events.append(Weight(seq, t, tenant, step.size))
        elif not queue:
            continue
        elif step.kind == "remove":
            events.append(Remove(seq, t, tenant, queue.pop(step.place % len(queue))))
        else:
            cost = step.size
            events.append(Dispatch(seq, t, tenant, weight, queue.pop(0), cost, charge(cost, weight), 0, 0, "e0"))
    if not any(waiting.values()):
        events.append(Reset(len(events), float(len(events)), 0))
    return Log(header, tuple(events))


def completed(log: Log, used: Sequence[Used | None]) -> Log:
    """The log, with every dispatched request completed at the end, having used these tokens in turn."""
    events = list(log.events)
    for number, event in enumerate([event for event in events if isinstance(event, Dispatch)]):
        seq = len(events)
        events.append(Complete(seq, float(seq), event.tenant, event.request, "e0", used[number % len(used)]))
    return Log(log.header, tuple(events))
