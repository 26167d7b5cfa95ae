"""What must hold of any run of the scheduler, as functions that raise AssertionError where it does not.

All are linear in the run for each tenant or pair: an inequality over every interval `(t1, t2]` is split into a
part that depends on t1 and one that depends on t2, and the worst t1 so far is carried along.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise, permutations

from support.sfq_history import Moment


def check_bands(moments: Sequence[Moment]) -> None:
    """§3.1: `v` never decreases, `S_i <= v + l_i`, and `S_i >= v` for whoever waits."""
    for before, now in pairwise(moments):
        assert now.v >= before.v, f"virtual time went back at {now}"
    for now in moments:
        for tenant, meter in now.meters.items():
            assert meter <= now.v + now.last.get(tenant, 0), f"{tenant} leads by more than its last charge: {now}"
        for tenant in now.backlogged:
            assert now.meters[tenant] >= now.v, f"{tenant} waits with a meter below virtual time: {now}"


def check_gap(moments: Sequence[Moment]) -> None:
    """§3.2: over every interval in which both wait, `N_i - N_j <= l_i(t2) + l_j(t1)`.

    From the later join through the event that empties either queue, inclusive.
    """
    for i, j in permutations({tenant for now in moments for tenant in now.backlogged}, 2):
        least: int | None = None
        for now in moments:
            lead = now.charged.get(i, 0) - now.charged.get(j, 0)
            if least is not None:
                excess = lead - now.last.get(i, 0) - least
                assert excess <= 0, f"the gap between {i} and {j} exceeds its bound by {excess} at {now}"
            if i in now.backlogged and j in now.backlogged:
                start = lead + now.last.get(j, 0)
                least = start if least is None else min(least, start)
            else:
                least = None


def check_come_and_go(moments: Sequence[Moment]) -> None:
    """§3.3: nobody receives more than `v` moved by, and a charge; whoever waits, no less, but for a charge."""
    for tenant in {tenant for now in moments for tenant in now.backlogged}:
        least = 0
        most: int | None = None
        for now in moments:
            beyond = now.charged.get(tenant, 0) - now.v
            last = now.last.get(tenant, 0)
            assert beyond - last <= least, f"{tenant} came and went and received too much by {now}"
            least = min(least, beyond)
            if most is not None:
                assert beyond >= most, f"{tenant} waited and received too little by {now}"
            if tenant not in now.backlogged:
                most = None
            elif most is None or beyond - last > most:
                most = beyond - last


def check_tags(moments: Sequence[Moment]) -> None:
    """§2.1, from the decisions alone: a start tag is the last finish tag, or `v` at the join if that is greater."""
    waiting: frozenset[str] = frozenset()
    tags: dict[str, int] = {}
    for now in moments:
        for tenant in now.backlogged - waiting:
            tags[tenant] = max(tags.get(tenant, 0), now.v)
        if now.decision is not None:
            tenant = now.decision.tenant
            assert now.decision.start_tag == tags[tenant] == now.v, f"the tag should be {tags[tenant]} in {now}"
            tags[tenant] += now.decision.charge
        waiting = now.backlogged


def check_charges(moments: Sequence[Moment]) -> None:
    """§4.4: the charge is the cost over the weight in force at the dispatch, and never nothing."""
    for now in moments:
        if now.decision is not None:
            assert now.decision.charge == now.due, f"{now.decision.charge} was charged where {now.due} was due: {now}"
            assert now.decision.charge >= 1, f"free of charge: {now}"


def check_meters_rest(moments: Sequence[Moment]) -> None:
    """§5.1: removal, completion, failure and a weight change move no meter, and virtual time neither."""
    for before, now in pairwise(moments):
        if now.event in {"remove", "reweigh", "end"}:
            assert now.v == before.v, f"virtual time moved at {now}"
            for tenant in now.meters.keys() & before.meters.keys():
                assert now.meters[tenant] == before.meters[tenant], f"the meter of {tenant} moved at {now}"


def check_somebody_goes(moments: Sequence[Moment]) -> None:
    """A free slot that asks gets a request whenever one waits."""
    for before, now in pairwise(moments):
        if now.event == "reset":
            assert not before.backlogged, f"a slot was left free while {sorted(before.backlogged)} waited"


CHECKS = (
    check_bands,
    check_gap,
    check_come_and_go,
    check_tags,
    check_charges,
    check_meters_rest,
    check_somebody_goes,
)
