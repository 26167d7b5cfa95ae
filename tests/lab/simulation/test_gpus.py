"""The GPUs: what they were derived from can be had back from the model."""

import pytest

from fairpool_lab.engine.batching import Batcher, Limits, Sequence
from fairpool_lab.simulation.gpus import GPUS


@pytest.mark.parametrize("name", GPUS)
def test_each_is_listed_by_its_name_and_says_where_it_comes_from(name):
    assert GPUS[name].name == name
    assert GPUS[name].source


@pytest.mark.parametrize(("prompt", "output"), [(256, 256), (64, 192), (512, 128), (128, 512)])
def test_a_batch_on_the_a10g_takes_what_the_vtc_papers_artifact_fitted(prompt, output):
    limits = GPUS["a10g"].limits
    fitted = 0.21001891 * prompt + 0.10075395 * output + 0.0039868 * prompt * output + 0.00324733 * output**2
    batch = limits.kv_tokens // (prompt + output)
    assert 1000 * seconds(limits, batch, prompt, output) / batch == pytest.approx(fitted, rel=0.06)


@pytest.mark.parametrize(
    ("name", "one", "of_64", "of_4096"), [("a100", 0.292, 0.305, 8.2255), ("h100", 0.176, 0.185, 2.623)]
)
def test_a_step_on_the_others_takes_what_vidur_measured_of_32_layers(name, one, of_64, of_4096):
    limits = GPUS[name].limits
    context = limits.step_per_context_token
    assert limits.step_base * 1000 == pytest.approx(32 * one)
    assert 1000 * (decode(limits, 64) - 64 * context) == pytest.approx(32 * of_64, rel=0.01)
    assert 1000 * (limits.step_base + 4095 / limits.prefill_tokens_per_second) == pytest.approx(32 * of_4096)


def test_the_newer_is_the_faster():
    times = [seconds(GPUS[name].limits, 16, 256, 256) for name in ("a10g", "a100", "h100")]
    assert times == sorted(times, reverse=True)


def seconds(limits: Limits, batch: int, prompt: int, output: int) -> float:
    """How long a batch of equal requests takes that are all there at once."""
    batcher: Batcher[Sequence] = Batcher(limits)
    for _ in range(batch):
        batcher.submit(Sequence(prompt, output))
    now = 0.0
    while (ends := batcher.begin(now)) is not None:
        now = ends
        batcher.end()
    assert not batcher.preemptions
    return now


def decode(limits: Limits, batch: int) -> float:
    """How long the second step of a batch takes, each with a prompt of one token."""
    batcher: Batcher[Sequence] = Batcher(limits)
    for _ in range(batch):
        batcher.submit(Sequence(1, 9))
    batcher.begin(0.0)
    batcher.end()
    ends = batcher.begin(0.0)
    assert ends is not None
    return ends
