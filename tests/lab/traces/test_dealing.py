"""A trace that names no tenants is dealt to some, conversation by conversation."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from fairpool_lab import traces
from fairpool_lab.traces import TraceRequest


def asking(*prompts: tuple[int, ...]) -> tuple[TraceRequest, ...]:
    return tuple(TraceRequest(float(number), "all", 10, 2, None, prompt) for number, prompt in enumerate(prompts))


plain = st.integers(0, 200).map(lambda count: asking(*[()] * count))


@given(plain, st.integers(1, 9), st.integers())
def test_nothing_changes_but_the_tenants(trace, tenants, seed):
    found = traces.dealt(trace, tenants, Random(seed))
    assert tuple(replace(request, tenant="all") for request in found) == trace
    assert {request.tenant for request in found} <= {f"t{number}" for number in range(1, tenants + 1)}


@given(plain, st.integers())
def test_chance_follows_from_the_seed(trace, seed):
    assert traces.dealt(trace, 5, Random(seed)) == traces.dealt(trace, 5, Random(seed))


def test_a_conversation_stays_with_its_tenant():
    turns = [tuple(range(1000 * talk, 1000 * talk + turn)) for turn in range(1, 6) for talk in range(1, 60)]
    found = traces.dealt(asking(*turns), 50, Random(7))
    owners = {(request.prefix[0], request.tenant) for request in found}
    assert len(owners) == 59
    assert len({tenant for _, tenant in owners}) > 10


def test_a_common_beginning_makes_no_conversation():
    """All prompts begin with the same block, as behind a system prompt: they are not all one tenant's."""
    prompts = [(0, *(1000 * talk + part for part in range(1, 4))) for talk in range(60)]
    assert len({request.tenant for request in traces.dealt(asking(*prompts), 50, Random(7))}) > 10


def test_some_get_more_than_others():
    found = Counter(request.tenant for request in traces.dealt(asking(*[()] * 10_000), 4, Random(7)))
    assert [round(found[f"t{number}"] / found["t1"], 1) for number in (2, 3, 4)] == [0.5, 0.3, 0.2]
