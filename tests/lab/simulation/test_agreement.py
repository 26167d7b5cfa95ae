"""The simulator and the demonstration's engine do the same, step by step: the same model carries both.

The engine's clock is replaced by one that the test sets; its timers then never find anything to do.
"""

import asyncio
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.simulations import SMALL

from fairpool_lab.engine import requests as engine_requests
from fairpool_lab.engine import runner as runner_module
from fairpool_lab.engine.runner import Runner
from fairpool_lab.engine.tokens import Language
from fairpool_lab.simulation import Ask, ContinuousBatching
from fairpool_lab.simulation.request import SimulatedRequest

sizes = st.tuples(st.integers(1, 40), st.integers(1, 20))
moments = st.floats(0, 2).map(lambda seconds: round(seconds, 3))
arrivals = st.lists(st.tuples(moments, sizes), min_size=1, max_size=12).map(sorted)
departures = st.lists(st.tuples(moments, st.integers(0, 11)), max_size=3).map(sorted)


def seen(batcher):
    """What an engine is doing: who runs and who waits, by how much of each is done; and the step that has begun."""
    return (
        [(each.prompt_tokens, each.generated, each.computed, each.held) for each in batcher.running],
        [(each.prompt_tokens, each.generated, each.computed, each.held) for each in batcher.waiting],
        [tokens for _, tokens in batcher.step],
        batcher.kv_used,
        batcher.preemptions,
    )


def in_the_simulator(arrivals, departures, moments, limits):
    engine = ContinuousBatching(limits)
    requests = [SimulatedRequest(str(n), Ask(at, "a", *size), "m", None) for n, (at, size) in enumerate(arrivals)]
    views = []
    for moment in moments:
        while engine.due is not None and engine.due <= moment:
            engine.advance()
        for request, (at, _) in zip(requests, arrivals, strict=True):
            if at == moment:
                engine.submit(moment, request)
        for at, number in departures:
            if at == moment and number < len(requests) and arrivals[number][0] <= moment:
                engine.abort(requests[number])
        views.append((seen(engine.batcher), engine.due))
    return views


def in_the_demonstrations_engine(arrivals, departures, moments, limits, set_clock):
    async def play():
        set_clock(0.0)
        runner = Runner(limits, Language(), speed=1.0, tokens_per_event=1)
        generations = {}
        views = []
        for moment in moments:
            set_clock(moment)
            runner._catch_up()
            for number, (at, (prompt, output)) in enumerate(arrivals):
                if at == moment:
                    text = engine_requests.Prompt(prompt, str(number).encode())
                    ask = engine_requests.Ask("m", (text,), least=output, most=output)
                    generations[number] = runner.submit(ask, "a")
            for at, number in departures:
                if at == moment and number in generations:
                    runner.abort(generations[number])
            views.append((seen(runner.batcher), runner._step_ends))
        runner.close()
        return views

    return asyncio.run(play())


def both(arrivals, departures, limits=SMALL, other=SMALL):
    with pytest.MonkeyPatch.context() as patch:
        clock = [0.0]
        patch.setattr(runner_module, "monotonic", lambda: clock[0])
        moments = sorted({at for at, _ in [*arrivals, *departures]} | {step / 10 for step in range(80)})
        simulated = in_the_simulator(arrivals, departures, moments, limits)
        real = in_the_demonstrations_engine(arrivals, departures, moments, other, lambda now: clock.__setitem__(0, now))
    return simulated, real


@given(arrivals, departures)
@settings(max_examples=40, deadline=None)
def test_both_do_the_same_at_every_moment(arrivals, departures):
    simulated, real = both(arrivals, departures)
    for (doing, due), (really_doing, really_due) in zip(simulated, real, strict=True):
        assert doing == really_doing
        assert due == pytest.approx(really_due)
    assert simulated[-1] == (([], [], [], 0, simulated[-1][0][4]), None)


def test_a_model_that_is_a_little_slower_is_told_apart():
    crowd = [(0.0, (30, 10)), (0.05, (20, 10)), (0.1, (10, 20))]
    simulated, real = both(crowd, [], other=replace(SMALL, step_per_sequence=SMALL.step_per_sequence * 1.01))
    assert simulated != real
