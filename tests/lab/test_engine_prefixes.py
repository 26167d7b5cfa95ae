"""The prefix cache: what is computed once is not computed again, and it never takes room from who runs."""

import pytest

from fairpool_lab.engine.batching import Batcher, Limits, Sequence
from fairpool_lab.engine.prefixes import PrefixCache
from fairpool_lab.errors import SettingsInvalid

LIMITS = Limits(max_model_len=40, kv_tokens=40, max_num_batched_tokens=64, prefill_tokens_per_second=1000.0)


def batcher() -> Batcher[Sequence]:
    return Batcher(LIMITS, PrefixCache(block_tokens=4))


def run(batcher: Batcher[Sequence], *sequences: Sequence) -> list[int]:
    """Let them finish; returns how many tokens each step computed."""
    for sequence in sequences:
        batcher.submit(sequence)
    steps = []
    while batcher.begin(0.0) is not None:
        steps.append(sum(tokens for _, tokens in batcher.step))
        batcher.end()
    return steps


class TestReuse:
    def test_a_prompt_that_begins_alike_starts_behind_what_is_there(self):
        engine = batcher()
        assert run(engine, Sequence(10, 1, (1, 2))) == [10]
        assert run(engine, Sequence(11, 1, (1, 2))) == [3]
        assert run(engine, Sequence(11, 1, (1, 7))) == [7]

    def test_the_last_token_of_a_prompt_is_always_computed(self):
        engine = batcher()
        assert run(engine, Sequence(8, 1, (1, 2))) == [8]
        assert run(engine, Sequence(8, 1, (1, 2))) == [4]

    def test_a_block_after_a_gap_is_of_no_use(self):
        engine = batcher()
        run(engine, Sequence(12, 1, (1, 2, 3)))
        assert run(engine, Sequence(13, 1, (9, 2, 3))) == [13]

    def test_without_a_cache_everything_is_computed(self):
        engine: Batcher[Sequence] = Batcher(LIMITS)
        assert run(engine, Sequence(10, 1, (1, 2))) == [10]
        assert run(engine, Sequence(10, 1, (1, 2))) == [10]

    def test_blocks_are_there_once_they_are_computed_and_not_before(self):
        engine = batcher()
        assert run(engine, Sequence(10, 3, (1, 2)), Sequence(10, 3, (1, 2))) == [20, 2, 2]


class TestRoom:
    def test_what_two_share_counts_once(self):
        engine = batcher()
        run(engine, Sequence(16, 1, (1, 2, 3)))
        for _ in range(2):
            engine.submit(Sequence(16, 5, (1, 2, 3)))
        engine.begin(0.0)
        assert (engine.running_count, engine.kv_used) == (2, 12 + 4 + 4)

    def test_idle_blocks_make_way_the_least_recently_used_first(self):
        engine = batcher()
        run(engine, Sequence(12, 1, (1, 2, 3)))
        run(engine, Sequence(12, 1, (4, 5, 6)))
        assert engine.cache is not None
        assert engine.cache.idle == 6
        run(engine, Sequence(24, 1))
        assert engine.cache.found((1, 2, 3)) == 1
        assert engine.cache.found((4, 5, 6)) == 3
        run(engine, Sequence(39, 1))
        assert engine.cache.idle == 0

    def test_who_was_preempted_finds_its_own_beginning_again(self):
        engine: Batcher[Sequence] = Batcher(
            Limits(max_model_len=20, kv_tokens=24, max_num_batched_tokens=64), PrefixCache(4)
        )
        old, young = Sequence(10, 8, (1, 2)), Sequence(10, 8, (3, 4))
        assert run(engine, old, young)[0] == 20
        assert young.preemptions == 1
        assert young.generated == 8

    def test_a_block_has_at_least_one_token(self):
        with pytest.raises(SettingsInvalid, match="block_tokens"):
            PrefixCache(0)


class TestContext:
    def test_a_step_takes_longer_the_more_kv_it_reads(self):
        limits = Limits(step_base=0.01, step_per_sequence=0.0, step_per_context_token=0.001)
        engine: Batcher[Sequence] = Batcher(limits)
        for prompt in (100, 50):
            engine.submit(Sequence(prompt, 5))
        engine.begin(0.0)
        engine.end()
        assert engine.begin(2.0) == pytest.approx(2.01 + 0.150)
        engine.end()
        assert engine.begin(2.0) == pytest.approx(2.01 + 0.152)

    def test_what_the_cache_had_is_read_too(self):
        engine: Batcher[Sequence] = Batcher(
            Limits(step_base=0.01, step_per_sequence=0.0, step_per_context_token=0.001, prefill_tokens_per_second=1e12),
            PrefixCache(4),
        )
        run(engine, Sequence(9, 1, (1, 2)))
        engine.submit(Sequence(9, 1, (1, 2)))
        assert engine.begin(0.0) == pytest.approx(0.01 + 0.008)
