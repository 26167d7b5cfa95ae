"""The model of the GPU: what always holds, and that each broken variant of it is caught."""

from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairpool_lab.engine.batching import Batcher, Limits, Outcome, Sequence
from fairpool_lab.errors import SettingsInvalid

SMALL = Limits(
    max_num_seqs=3,
    max_num_batched_tokens=16,
    max_model_len=40,
    kv_tokens=60,
    prefill_tokens_per_second=1000.0,
    step_base=0.01,
    step_per_sequence=0.001,
)


class Numbered(Sequence):
    __slots__ = ("number",)

    def __init__(self, number: int, prompt: int, output: int) -> None:
        super().__init__(prompt, output)
        self.number = number


@dataclass(frozen=True)
class Submit:
    prompt: int
    output: int


@dataclass(frozen=True)
class Abort:
    which: int


class Step:
    """One step of the engine."""

    def __repr__(self) -> str:
        return "Step()"


submissions = st.builds(Submit, st.integers(1, 30), st.integers(0, 10))
scripts = st.lists(submissions | st.builds(Abort, st.integers(0, 30)) | st.builds(Step), max_size=60)


class Drive:
    """Plays a script, checks what must hold after each event, and lets all work come to its end."""

    def __init__(self, kind: type[Batcher[Numbered]] = Batcher) -> None:
        self.batcher = kind(SMALL)
        self.now = 0.0
        self.ends: float | None = None
        self.sequences: list[Numbered] = []
        self.admitted: list[int] = []
        self.seen_admitted: set[int] = set()
        self.aborted: set[int] = set()
        self.finished: set[int] = set()
        self.gained: dict[int, int] = {}
        self.log: list[tuple[float, tuple[int, ...], tuple[int, ...]]] = []

    def play(self, script: list[Submit | Abort | Step]) -> None:
        for event in script:
            if isinstance(event, Submit):
                sequence = Numbered(len(self.sequences), event.prompt, event.output)
                self.sequences.append(sequence)
                self.batcher.submit(sequence)
            elif isinstance(event, Abort):
                if event.which < len(self.sequences):
                    self.batcher.abort(self.sequences[event.which])
                    if event.which not in self.finished:
                        self.aborted.add(event.which)
            else:
                self.step()
            self.check()
        for _ in range(2000):
            if not self.batcher.running_count and not self.batcher.waiting_count:
                break
            self.step()
            self.check()
        self.check_end()

    def step(self) -> None:
        if self.ends is None:
            self.begin()
        if self.ends is not None:
            self.now = self.ends
            outcome = self.batcher.end()
            self.note(outcome)
            self.begin()

    def begin(self) -> None:
        self.ends = self.batcher.begin(self.now)
        self.check_step()
        for sequence in self.batcher.running:
            if sequence.number not in self.seen_admitted:
                self.seen_admitted.add(sequence.number)
                self.admitted.append(sequence.number)

    def note(self, outcome: Outcome[Numbered]) -> None:
        for sequence in outcome.progressed:
            self.gained[sequence.number] = self.gained.get(sequence.number, 0) + 1
        for sequence in outcome.finished:
            assert sequence.number not in self.finished, "finished twice"
            self.finished.add(sequence.number)
        progressed = tuple(sequence.number for sequence in outcome.progressed)
        self.log.append((self.now, progressed, tuple(sequence.number for sequence in outcome.finished)))

    def check(self) -> None:
        running, waiting = self.batcher.running, self.batcher.waiting
        assert len(running) <= SMALL.max_num_seqs, "more run than may"
        assert self.batcher.kv_used <= SMALL.kv_tokens, "more KV is held than there is"
        assert self.batcher.kv_used == sum(sequence.held for sequence in running), "KV leaks"
        assert all(sequence.held >= sequence.computed for sequence in running), "computed without KV"
        order = [sequence.number for sequence in (*running, *waiting)]
        assert order == sorted(order), "somebody overtook"

    def check_step(self) -> None:
        step = self.batcher.step
        assert sum(tokens for _, tokens in step) <= SMALL.max_num_batched_tokens, "a step beyond its budget"
        assert all(tokens > 0 for _, tokens in step), "nothing to do in a step"
        if self.ends is not None:
            prefill = sum(
                tokens for sequence, tokens in step if sequence.total - sequence.computed > 1 or not sequence.generated
            )
            lasts = SMALL.step_base + SMALL.step_per_sequence * len(step) + prefill / SMALL.prefill_tokens_per_second
            assert self.ends - self.now == pytest.approx(lasts), "a step lasts as long as what is in it"
        else:
            assert self.batcher.running_count + self.batcher.waiting_count == 0, "idle beside work"

    def check_end(self) -> None:
        everybody = set(range(len(self.sequences)))
        assert self.finished | self.aborted == everybody, "somebody never finishes"
        assert self.batcher.kv_used == 0, "KV is held by nobody"
        for number in self.finished:
            assert self.gained.get(number, 0) == self.sequences[number].output_tokens, "tokens are lost or invented"
        assert self.admitted == sorted(self.admitted), "admitted out of turn"


@given(scripts)
def test_never_more_than_the_limits_first_come_first_served_and_everybody_finishes(script):
    Drive().play(script)


@given(scripts)
@settings(max_examples=30)
def test_the_same_submissions_give_the_same_steps(script):
    one, other = Drive(), Drive()
    one.play(script)
    other.play(script)
    assert one.log == other.log


CROWD = [
    *(Submit(12, 10) for _ in range(6)),
    *(Step() for _ in range(3)),
    Abort(1),
    Submit(28, 10),
    Submit(28, 10),
    Submit(1, 0),
]
"""Presses on every limit: more than may run, more KV than there is, chunked prompts, an abort in the middle."""


def test_the_crowd_presses_on_every_limit():
    drive = Drive()
    drive.play(CROWD)
    assert drive.batcher.preemptions > 0
    assert drive.aborted == {1}


class AdmitsOneTooMany(Batcher[Numbered]):
    def _admit(self, budget):
        admitted = super()._admit(budget)
        if self._waiting and self.kv_used + 13 < self.limits.kv_tokens:
            extra, _ = self._waiting.popitem(last=False)
            self._running.append(extra)
            extra.held = extra.total
            self.kv_used += extra.held
        return admitted


class ForgetsTheCache(Batcher[Numbered]):
    def _make_room(self, sequence, wanted):
        return True


class LeaksOnAbort(Batcher[Numbered]):
    def abort(self, sequence):
        held = sequence.held
        super().abort(sequence)
        self.kv_used += held


class ServesTheLatest(Batcher[Numbered]):
    def _admit(self, budget):
        if self._waiting:
            self._waiting.move_to_end(next(reversed(self._waiting)), last=False)
        return super()._admit(budget)


class LosesThePreempted(Batcher[Numbered]):
    def _make_room(self, sequence, wanted):
        stays = super()._make_room(sequence, wanted)
        self._waiting.popitem(last=False)
        return stays


class RemembersNothingOfTheAnswer(Batcher[Numbered]):
    def _make_room(self, sequence, wanted):
        stays = super()._make_room(sequence, wanted)
        preempted = next(iter(self._waiting))
        preempted.total = preempted.prompt_tokens
        return stays


class OverspendsTheStep(Batcher[Numbered]):
    def _admit(self, budget):
        return super()._admit(budget + 5)


@pytest.mark.parametrize(
    ("broken", "caught"),
    [
        (AdmitsOneTooMany, "more run than may"),
        (ForgetsTheCache, "more KV is held"),
        (LeaksOnAbort, "KV leaks"),
        (ServesTheLatest, "overtook"),
        (LosesThePreempted, "never finishes"),
        (RemembersNothingOfTheAnswer, "lost or invented"),
        (OverspendsTheStep, "beyond its budget"),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_a_broken_model_is_caught(broken, caught):
    with pytest.raises(AssertionError, match=caught):
        Drive(broken).play(CROWD)


class TestTiming:
    def test_a_decode_step_slows_with_the_batch(self):
        assert decode_step(sequences=1) == pytest.approx(0.011)
        assert decode_step(sequences=3) == pytest.approx(0.013)

    def test_a_prompt_is_read_at_the_rate_of_prefill(self):
        batcher = Batcher(Limits(prefill_tokens_per_second=1000, max_num_batched_tokens=2048, step_base=0.01))
        batcher.submit(Sequence(500, 1))
        assert batcher.begin(3.0) == pytest.approx(3.0 + 0.01 + batcher.limits.step_per_sequence + 0.5)

    def test_a_long_prompt_is_read_in_chunks_beside_those_that_decode(self):
        batcher = Batcher(Limits(max_num_batched_tokens=100))
        decoding, reading = Sequence(10, 50), Sequence(250, 1)
        batcher.submit(decoding)
        batcher.begin(0.0)
        batcher.end()
        batcher.submit(reading)
        chunks = []
        while reading.generated == 0:
            batcher.begin(0.0)
            chunks.append([tokens for _, tokens in batcher.step])
            batcher.end()
        assert chunks == [[1, 99], [1, 99], [1, 52]]
        assert decoding.generated == 4


def decode_step(sequences: int) -> float:
    batcher: Batcher[Sequence] = Batcher(SMALL)
    for _ in range(sequences):
        batcher.submit(Sequence(5, 9))
    batcher.begin(0.0)
    batcher.end()
    ends = batcher.begin(0.0)
    assert ends is not None
    return ends


class TestPreemption:
    def test_the_youngest_goes_back_to_the_head_of_the_queue_and_starts_over(self):
        batcher: Batcher[Numbered] = Batcher(Limits(max_model_len=20, kv_tokens=24, max_num_batched_tokens=64))
        old, young, later = Numbered(0, 10, 8), Numbered(1, 10, 8), Numbered(2, 5, 8)
        for sequence in (old, young, later):
            batcher.submit(sequence)
        while not batcher.preemptions:
            batcher.begin(0.0)
            batcher.end()
        assert [sequence.number for sequence in batcher.waiting] == [1, 2]
        assert (young.computed, young.held, young.preemptions) == (0, 0, 1)
        assert young.generated > 0


class TestBadInput:
    @pytest.mark.parametrize(
        "field", ["max_num_seqs", "max_num_batched_tokens", "max_model_len", "prefill_tokens_per_second", "step_base"]
    )
    def test_a_limit_must_be_positive(self, field):
        with pytest.raises(SettingsInvalid, match=field):
            Limits(**{field: 0})

    def test_the_cache_must_hold_the_longest_sequence(self):
        with pytest.raises(SettingsInvalid, match="must hold"):
            Limits(max_model_len=100, kv_tokens=99)

    @pytest.mark.parametrize(("prompt", "output"), [(0, 1), (40, 1), (1, 40)])
    def test_a_sequence_that_fits_no_model_is_refused(self, prompt, output):
        with pytest.raises(SettingsInvalid):
            Batcher(SMALL).submit(Sequence(prompt, output))
