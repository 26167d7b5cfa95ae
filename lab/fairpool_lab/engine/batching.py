"""What a GPU makes of many requests at once: continuous batching as a pure model, for the engine and the simulator.

Work goes in steps. A step takes one token from each sequence that decodes and a chunk of the prompt of each that
does not yet, oldest first, up to `max_num_batched_tokens` in all; then it admits from the queue, in order of
arrival, while a place, budget and room in the KV cache are left. It lasts

    step_base + step_per_sequence * sequences in it + step_per_context_token * tokens whose KV these have
    + prompt tokens in it / prefill_tokens_per_second

and whoever has all its tokens computed at the end of it gains one. A sequence holds KV for its whole prompt from
admission on, and for each further token as it is made. When there is none left the youngest is preempted: it loses
what it holds, goes back to the head of the queue, and computes everything again.

With a prefix cache, a prompt that begins like an earlier one starts behind the blocks that are still there. One token
at least is left to compute. KV that several sequences share counts once; what only the cache keeps makes way for them.

What always holds: at most `max_num_seqs` run; the KV held never exceeds `kv_tokens`; whoever runs arrived before
whoever waits; the oldest is never preempted, and alone it always fits, so everybody finishes. Time is an argument
and nothing is drawn, so the same submissions give the same steps.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, fields
from typing import Final, Generic, NamedTuple, TypeVar

from fairpool_lab.engine.prefixes import PrefixCache
from fairpool_lab.errors import SettingsInvalid

_MAY_BE_ZERO: Final = {"step_per_sequence", "step_per_context_token"}


@dataclass(frozen=True, slots=True)
class Limits:
    """What the engine can do, in tokens and seconds. The names are vLLM's where it has one.

    Attributes:
        max_num_seqs: how many sequences run at once.
        max_num_batched_tokens: how many tokens one step computes at most.
        max_model_len: the longest prompt and answer together.
        kv_tokens: the tokens that fit the KV cache; at least one sequence of the greatest length.
        prefill_tokens_per_second: how fast prompts are read.
        step_base: how long a step takes whatever is in it.
        step_per_sequence: what each sequence in it adds.
        step_per_context_token: what each token adds whose KV a sequence in it has, for that is read.
    """

    max_num_seqs: int = 64
    max_num_batched_tokens: int = 2048
    max_model_len: int = 16_384
    kv_tokens: int = 131_072
    prefill_tokens_per_second: float = 16_000.0
    step_base: float = 0.010
    step_per_sequence: float = 0.000_25
    step_per_context_token: float = 0.0

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if value < 0 or (value == 0 and field.name not in _MAY_BE_ZERO):
                raise SettingsInvalid(f"{field.name} must be positive, not {value}")
        if self.kv_tokens < self.max_model_len:
            raise SettingsInvalid(f"kv_tokens ({self.kv_tokens}) must hold max_model_len ({self.max_model_len}) tokens")


class Sequence:
    """One prompt and the answer it grows. An answer of no tokens is finished once its prompt is read.

    Attributes:
        prompt_tokens: the length of the prompt.
        output_tokens: the length that the answer will reach.
        total: prompt and answer so far.
        computed: of these, the tokens whose KV is there.
        held: KV tokens that it has, shared ones included; nothing unless it runs.
        preemptions: how often it lost them.
        prefix: the names of the blocks that its prompt begins with, as `PrefixCache` has them.
        blocks: of these, the ones that it holds in the cache.
    """

    __slots__ = ("blocks", "computed", "held", "output_tokens", "preemptions", "prefix", "prompt_tokens", "total")

    def __init__(self, prompt_tokens: int, output_tokens: int, prefix: tuple[int, ...] = ()) -> None:
        self.prompt_tokens = prompt_tokens
        self.output_tokens = output_tokens
        self.prefix = prefix
        self.blocks: list[int] = []
        self.total = prompt_tokens
        self.computed = 0
        self.held = 0
        self.preemptions = 0

    @property
    def generated(self) -> int:
        """Tokens of the answer so far."""
        return self.total - self.prompt_tokens


S = TypeVar("S", bound=Sequence)


class Outcome(NamedTuple, Generic[S]):
    """What a step brought: who gained a token, and who is finished and gone."""

    progressed: list[S]
    finished: list[S]


class Batcher(Generic[S]):
    """The state of one engine: `begin` a step, `end` it when its time has come, and so on while there is work."""

    def __init__(self, limits: Limits, cache: PrefixCache | None = None) -> None:
        self.limits = limits
        self.cache = cache
        self.kv_used = 0
        self.preemptions = 0
        self._waiting: OrderedDict[S, None] = OrderedDict()
        self._running: list[S] = []
        self._step: list[tuple[S, int]] = []

    @property
    def running(self) -> tuple[S, ...]:
        """Who runs, oldest first."""
        return tuple(self._running)

    @property
    def waiting(self) -> tuple[S, ...]:
        """Who waits, oldest first."""
        return tuple(self._waiting)

    @property
    def step(self) -> tuple[tuple[S, int], ...]:
        """The step that has begun: who is in it, and with how many tokens."""
        return tuple(self._step)

    @property
    def running_count(self) -> int:
        """How many run."""
        return len(self._running)

    @property
    def waiting_count(self) -> int:
        """How many wait."""
        return len(self._waiting)

    def submit(self, sequence: S) -> None:
        """Append a sequence to the queue; it is looked at when the next step begins.

        Raises:
            SettingsInvalid: it would not fit the model even alone.
        """
        longest = sequence.prompt_tokens + sequence.output_tokens
        if sequence.prompt_tokens < 1 or longest > self.limits.max_model_len:
            raise SettingsInvalid(f"a sequence of {longest} tokens does not fit {self.limits.max_model_len}")
        self._waiting[sequence] = None

    def abort(self, sequence: S) -> None:
        """Take a sequence out, wherever it is; what the current step does for it is lost. Nothing if it is gone."""
        if sequence in self._waiting:
            del self._waiting[sequence]
        elif sequence.held:
            self._running.remove(sequence)
            self._release(sequence)

    def begin(self, now: float) -> float | None:
        """Begin a step at `now`; returns when it ends, or None when there is no work at all."""
        limits = self.limits
        step = self._step
        step.clear()
        running = self._running
        preemptions = self.preemptions
        budget = limits.max_num_batched_tokens
        prefilled = context = 0
        index = 0
        while index < len(running) and budget:
            sequence = running[index]
            missing = sequence.total - sequence.computed
            tokens = min(missing, budget)
            wanted = sequence.computed + tokens - sequence.held
            if wanted > 0:
                if self.kv_used + wanted > limits.kv_tokens and not self._make_room(sequence, wanted):
                    break
                sequence.held += wanted
                self.kv_used += wanted
            step.append((sequence, tokens))
            budget -= tokens
            context += sequence.computed
            if missing > 1 or not sequence.generated:
                prefilled += tokens
            index += 1
        if self.preemptions == preemptions:
            running_before = len(running)
            prefilled += self._admit(budget)
            context += sum(sequence.computed for sequence in running[running_before:])
        if not step:
            return None
        if self.cache is not None:
            self.cache.shrink((limits.kv_tokens - self.kv_used) // self.cache.block_tokens)
        return (
            now
            + limits.step_base
            + limits.step_per_sequence * len(step)
            + limits.step_per_context_token * context
            + prefilled / limits.prefill_tokens_per_second
        )

    def end(self) -> Outcome[S]:
        """End the step that has begun."""
        progressed: list[S] = []
        finished: list[S] = []
        for sequence, tokens in self._step:
            if not sequence.held:
                continue
            sequence.computed += tokens
            if self.cache is not None and len(sequence.blocks) < len(sequence.prefix):
                self._keep(self.cache, sequence, sequence.computed - tokens)
            if sequence.computed < sequence.total:
                continue
            if sequence.output_tokens:
                sequence.total += 1
                progressed.append(sequence)
            if sequence.total - sequence.prompt_tokens >= sequence.output_tokens:
                finished.append(sequence)
        self._step.clear()
        if finished:
            for sequence in finished:
                self._release(sequence)
            self._running = [sequence for sequence in self._running if sequence.held]
        return Outcome(progressed, finished)

    def _admit(self, budget: int) -> int:
        """Let in whoever is next while there is place, room and budget; returns the tokens that they bring."""
        limits = self.limits
        admitted = 0
        while self._waiting and budget and len(self._running) < limits.max_num_seqs:
            sequence = next(iter(self._waiting))
            wanted = sequence.total
            blocks: tuple[int, ...] = ()
            if self.cache is not None:
                blocks = self._found(self.cache, sequence)
                wanted -= (len(blocks) - self.cache.idle_among(blocks)) * self.cache.block_tokens
            if self.kv_used + wanted > limits.kv_tokens:
                break
            del self._waiting[sequence]
            self._running.append(sequence)
            sequence.held = sequence.total
            self.kv_used += wanted
            if self.cache is not None:
                self.cache.take(blocks)
                sequence.blocks.extend(blocks)
                sequence.computed = len(blocks) * self.cache.block_tokens
            tokens = min(sequence.total - sequence.computed, budget)
            self._step.append((sequence, tokens))
            budget -= tokens
            admitted += tokens
        return admitted

    def _make_room(self, sequence: S, wanted: int) -> bool:
        """Preempt from the youngest on until `wanted` more fit; False if that took `sequence` itself."""
        while self.kv_used + wanted > self.limits.kv_tokens:
            youngest = self._running.pop()
            self._release(youngest)
            youngest.computed = 0
            youngest.preemptions += 1
            self.preemptions += 1
            self._waiting[youngest] = None
            self._waiting.move_to_end(youngest, last=False)
            if youngest is sequence:
                return False
        return True

    def _release(self, sequence: S) -> None:
        self.kv_used -= sequence.held
        sequence.held = 0
        if sequence.blocks and self.cache is not None:
            held = self.cache.held
            self.cache.give_back(sequence.blocks)
            still_held = len(sequence.blocks) - (held - self.cache.held)
            self.kv_used += still_held * self.cache.block_tokens
            sequence.blocks.clear()

    def _found(self, cache: PrefixCache, sequence: S) -> tuple[int, ...]:
        """The blocks of a prompt that are there, but never all of it: its last token has to be computed."""
        blocks = sequence.prefix[: (sequence.prompt_tokens - 1) // cache.block_tokens]
        return blocks[: cache.found(blocks)]

    def _keep(self, cache: PrefixCache, sequence: S, before: int) -> None:
        """Put the blocks of a prompt that a step has filled into the cache; one that is there already stays its own."""
        size = cache.block_tokens
        last = min(sequence.computed, sequence.prompt_tokens) // size
        sequence.blocks.extend(block for block in sequence.prefix[before // size : last] if cache.add(block))
