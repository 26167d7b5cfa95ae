"""What an endpoint is inside, on the simulator's clock: the two kinds of engine that a run may have.

An engine is told of requests and clients that leave, says when something happens in it next (`due`), and what. What
always holds: it finishes every request that is not taken out; of each it reports every token once, and no other.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from heapq import heappop, heappush
from typing import NamedTuple, Protocol

from fairpool_gateway.cost import Used
from fairpool_lab.engine.batching import Batcher, Limits, Sequence
from fairpool_lab.engine.prefixes import PrefixCache
from fairpool_lab.errors import SettingsInvalid
from fairpool_lab.simulation.request import SimulatedRequest


class Progress(NamedTuple):
    """What was done for one request at one moment, in tokens. `cached` ones of its prompt had not to be computed."""

    request: SimulatedRequest
    input: int
    cached: int
    output: int


class Happened(NamedTuple):
    """What happened in an engine at one moment: for whom it did something, and who is finished."""

    progress: list[Progress]
    finished: list[SimulatedRequest]


class Engine(Protocol):
    """One endpoint's inside."""

    @property
    def due(self) -> float | None:
        """When something happens in it next; None if nothing will."""

    def submit(self, now: float, request: SimulatedRequest) -> None:
        """A request comes in."""

    def abort(self, request: SimulatedRequest) -> None:
        """Its client has left: nothing more is done for it."""

    def advance(self) -> Happened:
        """Let happen what is due."""

    def cached(self, request: SimulatedRequest) -> int:
        """How many tokens of the request's prompt a prefix cache has now."""


class FixedService:
    """Serves each request for as long as its true cost takes at a fixed rate, however many others it serves.

    The machine of queueing theory: with one slot a single server, with D slots D of them. All tokens, of prompt and
    answer, are there at the end, at once. No cost is below 1, as in the estimates. A request takes O(log D).

    Args:
        tokens_per_second: cost that is served in a second, in each slot.
        cost: the true cost of what a request uses.
    """

    def __init__(self, tokens_per_second: float, cost: Callable[[Used], int]) -> None:
        if not 0 < tokens_per_second < math.inf:
            raise SettingsInvalid(f"tokens_per_second must be positive, not {tokens_per_second}")
        self._rate = tokens_per_second
        self._cost = cost
        self._ends: list[tuple[float, int, SimulatedRequest]] = []
        self._served: set[SimulatedRequest] = set()
        self._submitted = 0

    @property
    def due(self) -> float | None:
        """When the next request is finished."""
        return self._ends[0][0] if self._ends else None

    def submit(self, now: float, request: SimulatedRequest) -> None:
        """Begin to serve it."""
        seconds = max(1, self._cost(Used(request.input_tokens, request.output_tokens))) / self._rate
        self._submitted += 1
        self._served.add(request)
        heappush(self._ends, (now + seconds, self._submitted, request))

    def abort(self, request: SimulatedRequest) -> None:
        """Serve it no longer."""
        self._served.discard(request)
        self._forget_aborted()

    def advance(self) -> Happened:
        """The next request is finished."""
        _, _, request = heappop(self._ends)
        self._served.remove(request)
        self._forget_aborted()
        return Happened([Progress(request, request.input_tokens, 0, request.output_tokens)], [request])

    def cached(self, request: SimulatedRequest) -> int:  # noqa: ARG002 - every engine is asked
        """None: there is no cache."""
        return 0

    def _forget_aborted(self) -> None:
        while self._ends and self._ends[0][2] not in self._served:
            heappop(self._ends)


class _Work(Sequence):
    """A request inside a batching engine, and how much of what was done for it has been reported."""

    __slots__ = ("read", "request", "told")

    def __init__(self, request: SimulatedRequest) -> None:
        super().__init__(request.input_tokens, request.output_tokens, request.prefix)
        self.request = request
        self.read = 0
        self.told = 0

    def progress(self, tokens: int) -> Progress | None:
        """What a step of so many tokens brought; nothing where it only did again what a preemption had undone."""
        output = self.total - self.prompt_tokens - self.told
        self.told += output
        computed = cached = 0
        if self.read < self.prompt_tokens:
            cached = max(0, self.computed - tokens - self.read)
            computed = max(0, min(self.computed, self.prompt_tokens) - self.read - cached)
            self.read += cached + computed
        return Progress(self.request, computed, cached, output) if computed or cached or output else None


class ContinuousBatching:
    """A GPU with continuous batching: the model of `engine.batching`, which the demonstration's engines run too.

    As there, the next step begins at the moment when the last one ends, so whoever comes in then has to wait for it.

    Args:
        limits: what the GPU can do.
        block_tokens: the tokens of a block of its prefix cache; None for no cache.
    """

    def __init__(self, limits: Limits, block_tokens: int | None = None) -> None:
        self.batcher = Batcher[_Work](limits, None if block_tokens is None else PrefixCache(block_tokens))
        self._ends: float | None = None
        self._works: dict[SimulatedRequest, _Work] = {}

    @property
    def due(self) -> float | None:
        """When the step that has begun ends."""
        return self._ends

    def submit(self, now: float, request: SimulatedRequest) -> None:
        """Let a request wait for the next step."""
        work = self._works[request] = _Work(request)
        self.batcher.submit(work)
        if self._ends is None:
            self._ends = self.batcher.begin(now)

    def abort(self, request: SimulatedRequest) -> None:
        """Take a request out, wherever it is."""
        if (work := self._works.pop(request, None)) is not None:
            self.batcher.abort(work)

    def advance(self) -> Happened:
        """End the step, and begin the next one."""
        assert self._ends is not None, "a step ends that has not begun"
        step = [entry for entry in self.batcher.step if entry[0].request in self._works]
        finished = self.batcher.end().finished
        progress = [done for work, tokens in step if (done := work.progress(tokens)) is not None]
        self._ends = self.batcher.begin(self._ends)
        for work in finished:
            del self._works[work.request]
        return Happened(progress, [work.request for work in finished])

    def cached(self, request: SimulatedRequest) -> int:
        """How many tokens of the request's prompt its prefix cache has now."""
        cache = self.batcher.cache
        if cache is None:
            return 0
        blocks = request.prefix[: (request.input_tokens - 1) // cache.block_tokens]
        return cache.found(blocks) * cache.block_tokens
