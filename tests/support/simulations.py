"""Scenarios for the simulator, and what must hold of every run of one."""

from collections import Counter
from dataclasses import dataclass
from hashlib import sha256

from hypothesis import strategies as st

from fairpool_gateway.config import QueueSettings
from fairpool_gateway.decision_log import Arrive, Complete, Dispatch, Remove
from fairpool_lab.engine.batching import Limits
from fairpool_lab.policies import POLICIES
from fairpool_lab.simulation import (
    ESTIMATORS,
    Ask,
    Clients,
    ContinuousBatching,
    End,
    FixedService,
    Replace,
    Reweigh,
    Run,
    Scenario,
    simulate,
)
from fairpool_lab.simulation.scenario import PATIENT

TENANTS = ("a", "b", "c")

SMALL = Limits(
    max_num_seqs=3,
    max_num_batched_tokens=16,
    max_model_len=60,
    kv_tokens=80,
    prefill_tokens_per_second=1000.0,
    step_base=0.01,
    step_per_sequence=0.001,
    step_per_context_token=0.0001,
)
"""A GPU so small that every limit is met."""

BLOCK = 4


def cost(used):
    return used.input + 2 * used.output


def fixed():
    return FixedService(100.0, cost)


class Watched(ContinuousBatching):
    """A batching engine that looks, after all that is done to it, whether its limits hold."""

    def __init__(self, limits=SMALL, block_tokens=BLOCK):
        super().__init__(limits, block_tokens)

    def submit(self, now, request):
        super().submit(now, request)
        self.look()

    def abort(self, request):
        super().abort(request)
        self.look()

    def advance(self):
        happened = super().advance()
        self.look()
        return happened

    def look(self):
        batcher, cache = self.batcher, self.batcher.cache
        assert batcher.running_count <= batcher.limits.max_num_seqs, "more run than may"
        blocks = [block for each in batcher.running for block in each.blocks]
        assert cache.held == len(set(blocks)), "nobody uses what is held"
        shared = len(blocks) - cache.held
        held = sum(each.held for each in batcher.running) - shared * cache.block_tokens
        assert batcher.kv_used == held, "KV leaks"
        assert held + (0 if self.due is None else cache.idle * cache.block_tokens) <= batcher.limits.kv_tokens, "no KV"
        assert sum(tokens for _, tokens in batcher.step) <= batcher.limits.max_num_batched_tokens, "beyond the budget"


def prompts(draw):
    """A prompt's length, and the blocks it begins with: of one of two conversations, of which it has all or a part."""
    tokens = draw(st.integers(1, 40))
    conversation = draw(st.sampled_from((0, 100)))
    blocks = draw(st.integers(0, tokens // BLOCK))
    return tokens, tuple(range(conversation, conversation + blocks))


@st.composite
def asks(draw):
    tokens, prefix = prompts(draw)
    return Ask(
        draw(st.sampled_from((0.0, 0.1, 0.25, 1.0, 2.0, 4.0))),
        draw(st.sampled_from(TENANTS)),
        tokens,
        draw(st.integers(0, 20)),
        draw(st.none() | st.integers(1, 100)),
        prefix,
        draw(st.none() | st.sampled_from((0.0, 0.01, 0.3, 2.0))),
        draw(st.none() | st.sampled_from((0.0, 0.2))),
        draw(st.none() | st.sampled_from((1, 5))),
    )


closed_loops = st.builds(
    Clients,
    st.sampled_from(TENANTS),
    st.integers(1, 4),
    st.just([(3, 2), (12, 5), (30, 1)]),
    begin=st.sampled_from((0.0, 0.5)),
    until=st.sampled_from((0.5, 1.5)),
    pause=st.sampled_from((0.0, 0.2)),
    leaves_after=st.none() | st.just(0.05),
    patience=st.none() | st.just(0.1),
    enough=st.none() | st.just(2),
)

endpoints = st.sets(st.sampled_from(("engine-0", "engine-1", "engine-2"))).map(lambda names: tuple(sorted(names)))

changes = st.builds(Reweigh, st.floats(0, 3), st.sampled_from(TENANTS), st.none() | st.integers(1, 1000)) | st.builds(
    Replace, st.floats(0, 3), endpoints
)

NARROW = QueueSettings.model_validate({"timeout": "2s", "maxRequests": 6, "perTenant": {"maxRequests": 3}})
"""A queue that refuses some, and that others wait in for too long."""


@st.composite
def scenarios(draw, engine=None):
    """Scenarios of every kind: open and closed loops, clients that leave, weights and endpoints that change."""
    return Scenario(
        engine or draw(st.sampled_from((fixed, Watched))),
        sorted(draw(st.lists(asks(), max_size=25)), key=lambda ask: ask.arrival),
        tuple(draw(st.lists(closed_loops, max_size=2))),
        draw(endpoints.filter(bool)),
        draw(st.integers(1, 4)),
        draw(st.dictionaries(st.sampled_from(TENANTS), st.integers(1, 1000))),
        changes=tuple(draw(st.lists(changes, max_size=3))),
        estimator=draw(st.sampled_from([each.make for each in ESTIMATORS.values()])),
        queue=draw(st.sampled_from((PATIENT, NARROW))),
        seed=draw(st.integers(0, 5)),
    )


@dataclass(frozen=True)
class Account:
    """How often each request arrived in the queue, left it, was given a slot and gave it back, by the decision log."""

    arrived: Counter[str]
    removed: Counter[str]
    dispatched: Counter[str]
    completed: Counter[str]


def account(run: Run) -> Account:
    counts = {kind: Counter[str]() for kind in (Arrive, Remove, Dispatch, Complete)}
    for event in run.log.events:
        if type(event) in counts:
            counts[type(event)][event.request] += 1
    return Account(*counts.values())


def check(run: Run) -> None:
    """Every request ended once, as the log has it too, and the engines did for each what it asked for."""
    seen = account(run)
    for request in run.requests:
        name = request.id
        assert request.end is not None, "a request never ends"
        assert seen.arrived[name] <= 1
        assert seen.arrived[name] == seen.removed[name] + seen.dispatched[name], "it leaves the queue once"
        assert seen.completed[name] == seen.dispatched[name], "it gives its slot back once"
        if request.end is End.COMPLETED:
            assert seen.dispatched[name] == 1
            assert request.computed + request.cached == request.input_tokens, "input tokens are lost or invented"
            assert request.generated == request.output_tokens, "output tokens are lost or invented"
            assert request.arrived <= request.dispatched <= (request.first_token or request.ended) <= request.ended
        else:
            assert request.end is not End.REFUSED or seen.dispatched[name] == 0
            assert request.computed + request.cached <= request.input_tokens
            assert request.generated <= request.output_tokens
    for tenant in TENANTS:
        of_requests = Counter(
            {
                what: sum(getattr(each, what) for each in run.requests if each.tenant == tenant)
                for what in ("computed", "cached", "generated")
            }
        )
        of_service = Counter(
            {
                what: sum(getattr(each, field) for each in run.service if each.tenant == tenant)
                for what, field in (("computed", "input"), ("cached", "cached"), ("generated", "output"))
            }
        )
        assert of_requests == of_service, f"the service given to {tenant} is not what its requests got"


def told(run: Run):
    """All of a run, to compare it with another."""
    requests = [
        (each.id, each.tenant, each.arrived, each.dispatched, each.first_token, each.ended, each.end, each.reason)
        for each in run.requests
    ]
    return run.log, requests, run.service, run.events


CROWD = Scenario(
    Watched,
    [
        Ask(
            number * 0.01,
            "ab"[number % 2],
            15 + number,
            20,
            prefix=(number // 4 * 10, number // 4 * 10 + 1),
            leaves_after=0.1 if number == 2 else None,
        )
        for number in range(16)
    ],
    (Clients("c", 2, [(4, 3), (20, 2)], until=1.0),),
    slots=4,
    seed=1,
)
"""Presses on every limit of the engine, shares prefixes, and has a client that leaves."""


def digest() -> str:
    """A run of the crowd in one word."""
    return sha256(repr(told(simulate(CROWD, POLICIES["sfq"].factory))).encode()).hexdigest()
