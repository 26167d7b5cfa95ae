"""How long a request takes alone, by the formula, is how long the model's steps take."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import Phase, find, given, settings
from hypothesis import strategies as st

from fairpool_lab.engine.alone import seconds_alone
from fairpool_lab.engine.batching import Batcher, Limits, Sequence

LIMITS = Limits(max_num_batched_tokens=7, max_model_len=100, kv_tokens=100, step_per_context_token=0.003)

requests = st.tuples(st.integers(1, 50), st.integers(0, 30))


def step_by_step(request: tuple[int, int]) -> float:
    batcher = Batcher[Sequence](LIMITS)
    batcher.submit(Sequence(*request))
    now = 0.0
    while (end := batcher.begin(now)) is not None:
        now = end
        batcher.end()
    return now


@given(requests)
@settings(deadline=None)
def test_it_is_what_its_steps_take(request):
    assert seconds_alone(LIMITS, *request) == pytest.approx(step_by_step(request))


@pytest.mark.parametrize(
    "broken",
    [
        lambda prompt, output: seconds_alone(LIMITS, prompt, output + 1),
        lambda prompt, output: seconds_alone(replace(LIMITS, max_num_batched_tokens=100), prompt, output),
        lambda prompt, output: seconds_alone(replace(LIMITS, step_per_context_token=0), prompt, output),
    ],
    ids=["a step for the first token as well", "prompts in one step", "context for nothing"],
)
def test_the_comparison_catches(broken: Callable[[int, int], float]):
    def disagrees(request: tuple[int, int]) -> bool:
        return broken(*request) != pytest.approx(step_by_step(request))

    assert find(requests, disagrees, settings=settings(max_examples=500, database=None, phases=[Phase.generate]))
