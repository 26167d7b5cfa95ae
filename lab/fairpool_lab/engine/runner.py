"""Carries requests through the model of the GPU in real time: one timer for the whole engine, no polling.

The model's clock runs `speed` times as fast as the event loop's. Whenever something happens, the steps that have
ended by then are taken first, each at its own exact time, so a loop that wakes late delays answers but never
changes what the model does. A request is woken when it has something to send, not for each of its tokens.
"""

from __future__ import annotations

import asyncio
import math
from collections import Counter
from collections.abc import Callable
from time import monotonic

from fairpool_lab.engine.batching import Batcher, Limits
from fairpool_lab.engine.generation import Choice, Generation
from fairpool_lab.engine.requests import Ask
from fairpool_lab.engine.tokens import Language
from fairpool_lab.errors import Refusal

_COUNTED = ("requests", "prompt", "generation")


class Runner:
    """The engine's inside: what waits, what runs, and what it has done so far.

    Args:
        limits: the model of the GPU.
        language: how it counts and speaks.
        speed: simulated seconds per real one.
        tokens_per_event: how many tokens a stream gathers for an event.
        max_queued: how many sequences may wait; None for any number.
    """

    def __init__(
        self, limits: Limits, language: Language, *, speed: float, tokens_per_event: int, max_queued: int | None = None
    ) -> None:
        self.limits = limits
        self.batcher: Batcher[Choice] = Batcher(limits)
        self.generation_tokens = 0
        self.rejected = 0
        self.finished: Counter[str] = Counter()
        self._language = language
        self._every = tokens_per_event
        self._max_queued = max_queued
        self._speed = self._rate = speed
        self._loop = asyncio.get_running_loop()
        self._real = monotonic()
        self._model = 0.0
        self._step_ends: float | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._live: set[Generation] = set()
        self._past: dict[str, Counter[str]] = {}
        self._watchers: set[asyncio.Event] = set()

    @property
    def prompt_tokens(self) -> int:
        """Tokens of prompts that have been read to their end."""
        return sum(counts["prompt"] for counts in self.tokens().values())

    def tokens(self) -> dict[str, dict[str, int]]:
        """By label: requests, prompt tokens read and tokens generated, of all requests so far."""
        totals = {label: Counter(counts) for label, counts in self._past.items()}
        for generation in self._live:
            totals.setdefault(generation.label, Counter()).update(generation.used())
        return {label: {key: counts[key] for key in _COUNTED} for label, counts in sorted(totals.items())}

    def submit(self, ask: Ask, label: str) -> Generation:
        """Let a request in; it waits for its turn inside.

        Raises:
            Refusal: too many wait already.
        """
        self._catch_up()
        if self._max_queued is not None and self.batcher.waiting_count >= self._max_queued:
            self.rejected += 1
            raise Refusal(503, "The engine's waiting queue is full.", kind="ServiceUnavailableError")
        generation = Generation(ask, self._language, self._every, self.limits.max_model_len, label)
        self._live.add(generation)
        for choice in generation.choices:
            self.batcher.submit(choice)
        self._resume()
        self._changed()
        return generation

    def abort(self, generation: Generation) -> None:
        """Its client has left: take it out at once, wherever it is. Nothing if it is finished."""
        if generation.gone or not generation.unfinished:
            return
        self._catch_up()
        if not generation.unfinished:
            return
        generation.gone = True
        self._end_early(generation)

    def abort_all(self) -> None:
        """End all requests as a vLLM that is told to stop does: with what they have, and `finish_reason` abort."""
        self._catch_up()
        for generation in list(self._live):
            self._end_early(generation)

    def slow_down(self, factor: float) -> None:
        """From now on the model's clock runs so many times slower than the settings say."""
        self._catch_up()
        real = monotonic()
        self._model += (real - self._real) * self._rate
        self._real = real
        self._rate = self._speed / factor
        self._arm()

    def close(self) -> None:
        """Stop the clock: nothing progresses any more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait until a condition on this engine's state holds; looked at after whatever changes it."""
        event = asyncio.Event()
        self._watchers.add(event)
        try:
            while not condition():
                event.clear()
                await event.wait()
        finally:
            self._watchers.discard(event)

    def _now(self) -> float:
        return self._model + (monotonic() - self._real) * self._rate

    def _on_timer(self) -> None:
        self._timer = None
        self._catch_up()
        self._arm()

    def _catch_up(self) -> None:
        """Take all steps that have ended by now."""
        ends = self._step_ends
        if ends is None:
            return
        now = self._now()
        if ends > now:
            return
        batcher = self.batcher
        woken: set[Generation] = set()
        while ends is not None and ends <= now:
            progressed, finished = batcher.end()
            self.generation_tokens += len(progressed)
            for choice in progressed:
                if choice.total - choice.prompt_tokens >= choice.wake_at:
                    woken.add(choice.generation)
            for choice in finished:
                if self._finish(choice, choice.ending):
                    woken.add(choice.generation)
            ends = batcher.begin(ends)
        self._step_ends = ends
        for generation in woken:
            generation.wake()
        self._changed()

    def _resume(self) -> None:
        """Begin a step if none is on its way."""
        if self._step_ends is None:
            self._step_ends = self.batcher.begin(self._now())
            self._arm()

    def _arm(self) -> None:
        self.close()
        if self._step_ends is not None:
            delay = self._real + (self._step_ends - self._model) / self._rate - monotonic()
            # uvloop rounds to milliseconds, and a timer that fires early would be set again and again.
            self._timer = self._loop.call_later(max(0, math.ceil(delay * 1000)) / 1000, self._on_timer)

    def _finish(self, choice: Choice, reason: str) -> bool:
        """A choice has come to its end; returns whether its request has something to send."""
        choice.finish = reason
        self.finished[reason] += 1
        generation = choice.generation
        generation.unfinished -= 1
        if not generation.unfinished:
            self._live.discard(generation)
            self._past.setdefault(generation.label, Counter()).update(generation.used())
        return generation.ask.stream or not generation.unfinished

    def _end_early(self, generation: Generation) -> None:
        for choice in generation.choices:
            if choice.finish is None:
                self.batcher.abort(choice)
                self._finish(choice, "abort")
        generation.wake()
        self._changed()

    def _changed(self) -> None:
        for event in self._watchers:
            event.set()
