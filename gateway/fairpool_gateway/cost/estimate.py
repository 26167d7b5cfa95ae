"""Estimating the cost of a request before it runs, and learning from those that completed (DESIGN §5; §7.4).

An estimate is an integer, at least 1, fixed when the request is dispatched. What a request really used moves no
meter: it corrects the estimates to come, so that they stay true in the long run.

Learned per tenant, with what the whole pool taught as the first belief: tokens per byte of text; what the tokens that
a body states, or that its images stand for, amount to; the length of an answer, or its ratio to `max_tokens`; tokens
per event of a stream. An answer that its `max_tokens` is sure to cut short is not estimated shorter for it, or a tenant
could mix tiny requests and long ones and be charged for too little.

Only completed requests may teach. A cancelled one says nothing about how long it would have been, and a tenant could
cancel to be taken for cheap.
"""

from __future__ import annotations

import enum
from collections import OrderedDict
from dataclasses import dataclass
from typing import Final

from fairpool_gateway.cost.learned import Average, Ratio
from fairpool_gateway.cost.shape import Shape, Used

FIRST_TOKENS_PER_BYTE: Final = 1 / 4
"""Tokens in a byte of text, before anything is known."""

FIRST_OUTPUT: Final = 256
"""Tokens in an answer, before anything is known."""

_WORTH_OF_TEXT = 1024
"""Bytes of text that the first belief in tokens per byte is worth."""

_WORTH_OF_TOKENS = 256
"""Tokens that the first belief in a ratio between tokens is worth."""

_WORTH_OF_EVENTS = 16
"""Events that the first belief in tokens per event is worth."""


class OutputEstimator(enum.Enum):
    """How the length of an answer is estimated."""

    TENANT_AVERAGE = "TenantAverage"
    MAX_TOKENS_RATIO = "MaxTokensRatio"


@dataclass(frozen=True, slots=True)
class CostModel:
    """What a pool says about cost: `input_weight * input + output_weight * output`, in tokens.

    `context_length` is the most tokens the model can hold: a `max_tokens` beyond it is no promise. `carry`:
    whether what estimates were off by is in later charges; it changes no estimate.
    """

    input_weight: int = 1
    output_weight: int = 2
    output_estimator: OutputEstimator = OutputEstimator.TENANT_AVERAGE
    context_length: int | None = None
    carry: bool = False


class _Learned:
    """What one tenant taught, or the whole pool."""

    __slots__ = ("length", "output", "per_byte", "per_event", "per_known")

    def __init__(self, per_byte: float, per_known: float, per_event: float, length: float | None) -> None:
        self.per_byte = Ratio(per_byte, _WORTH_OF_TEXT)
        self.per_known = Ratio(per_known, _WORTH_OF_TOKENS)
        self.per_event = Ratio(per_event, _WORTH_OF_EVENTS)
        self.length = None if length is None else Ratio(length, _WORTH_OF_TOKENS)
        self.output = Average()

    def heir(self) -> _Learned:
        """Somebody who has taught nothing, and starts with these beliefs."""
        length = None if self.length is None else self.length.value
        return _Learned(self.per_byte.value, self.per_known.value, self.per_event.value, length)


class Estimator:
    """Estimates the costs of one pool's requests. Both `estimate` and `learn` take constant time.

    Args:
        model: what the pool says about cost.
        max_tenants: of how many tenants to remember what they taught; beyond it, who asked least recently is
            forgotten, and starts again with what the pool taught.
    """

    def __init__(self, model: CostModel, *, max_tenants: int = 10_000) -> None:
        self._model = model
        self._max_tenants = max_tenants
        self._pool = _Learned(FIRST_TOKENS_PER_BYTE, 1, 1, None)
        self._tenants: OrderedDict[str, _Learned] = OrderedDict()

    def configure(self, model: CostModel) -> None:
        """Estimate by another model from now on; what was learned stays."""
        self._model = model

    def cost_of(self, used: Used) -> int:
        """The cost of what was really used, in tokens."""
        return self._model.input_weight * used.input + self._model.output_weight * used.output

    def estimate(self, tenant: str, shape: Shape) -> int:
        """The cost of a request, in tokens; at least 1."""
        learned = self._recall(tenant)
        model = self._model
        output = round(self._answer(learned, shape) * shape.choices) if shape.generates else 0
        return max(1, model.input_weight * _input(learned, shape) + model.output_weight * output)

    def from_events(self, tenant: str, shape: Shape, events: int) -> Used | None:
        """What an answer used that told no usage, by the content events of its stream; None if it had none."""
        if not events:
            return None
        learned = self._recall(tenant)
        output = round(events * learned.per_event.value)
        return Used(_input(learned, shape), max(1, output), events=events, told=False)

    def learn(self, tenant: str, shape: Shape, used: Used) -> None:
        """Learn from a request that completed; the caller keeps cancelled and failed ones away.

        What was estimated from events teaches the length of answers, and nothing that it was estimated with.
        """
        read = used.input if shape.generates else used.input + used.output
        limit = self._limit(shape)
        for learned in (self._remember(tenant), self._pool):
            if used.told:
                _learn_input(learned, shape, read)
                if used.events:
                    learned.per_event.learn(used.output, used.events)
            if shape.generates:
                learned.output.learn(used.output / shape.choices)
                if limit is not None:
                    learned.length = learned.length or Ratio(0, 0)
                    learned.length.learn(used.output, limit * shape.choices)

    def _answer(self, learned: _Learned, shape: Shape) -> float:
        """The length of one answer."""
        if self._model.output_estimator is OutputEstimator.MAX_TOKENS_RATIO and learned.length:
            limit = self._limit(shape)
            if limit is not None:
                return limit * learned.length.value
        return learned.output.value(self._pool.output.value(FIRST_OUTPUT))

    def _limit(self, shape: Shape) -> int | None:
        """The greatest length of one answer, as far as the request promises one."""
        limit, most = shape.max_tokens, self._model.context_length
        return limit if limit is None or most is None else min(limit, most)

    def _recall(self, tenant: str) -> _Learned:
        """What is known of a tenant, which is what the pool taught until it taught something itself."""
        learned = self._tenants.get(tenant)
        if learned is None:
            return self._pool
        self._tenants.move_to_end(tenant)
        return learned

    def _remember(self, tenant: str) -> _Learned:
        """The place for what a tenant teaches."""
        learned = self._tenants.get(tenant)
        if learned is None:
            learned = self._tenants[tenant] = self._pool.heir()
            if len(self._tenants) > self._max_tenants:
                self._tenants.popitem(last=False)
        else:
            self._tenants.move_to_end(tenant)
        return learned


def _input(learned: _Learned, shape: Shape) -> int:
    return round(shape.text_bytes * learned.per_byte.value + shape.input_tokens * learned.per_known.value)


def _learn_input(learned: _Learned, shape: Shape, tokens: int) -> None:
    """Let the larger part of the estimate, text or known tokens, learn all of what was wrong with it."""
    text = shape.text_bytes * learned.per_byte.value
    known = shape.input_tokens * learned.per_known.value
    if text >= known:
        learned.per_byte.learn(tokens - known, shape.text_bytes)
    else:
        learned.per_known.learn(tokens - text, shape.input_tokens)
