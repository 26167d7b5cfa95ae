"""One request of a simulated run: what the dispatcher knows of it, what it will really take, and what became of it."""

from __future__ import annotations

import enum

from fairpool_gateway.cost import Shape, Used
from fairpool_gateway.dispatcher import Request
from fairpool_lab.simulation.demand import Ask

BYTES_PER_TOKEN = 4
"""What a gateway reads of a prompt: so many bytes of text for each token, as an estimator believes at first."""


class TrueShape(Shape, frozen=True):
    """What a body says about its cost, and for an oracle what the request will really use."""

    truth: Used


class End(enum.Enum):
    """How a request ended."""

    COMPLETED = "completed"
    CANCELLED = "cancelled"
    REFUSED = "refused"


class SimulatedRequest(Request):
    """A request with its truth. Times are seconds of the run; None for what has not happened.

    Attributes:
        input_tokens: the length of its prompt.
        output_tokens: the length that its answer will reach.
        max_tokens: what its body sets as the most.
        prefix: the names of the blocks that its prompt begins with.
        client: which closed loop it belongs to; None for one of a trace.
        enough: how many tokens of its answer its client takes before it leaves; None for all of them.
        computed: tokens of its prompt that were computed for it, each counted once.
        cached: tokens of its prompt that a prefix cache had.
        generated: tokens of its answer so far.
        first_token: when the first of them was there.
        ended: when it ended.
        end: how.
        reason: why it was refused, if it was.
    """

    __slots__ = (
        "cached",
        "client",
        "computed",
        "end",
        "ended",
        "enough",
        "first_token",
        "generated",
        "input_tokens",
        "max_tokens",
        "output_tokens",
        "prefix",
        "reason",
    )

    def __init__(self, request_id: str, ask: Ask, model: str, client: int | None) -> None:
        shape = TrueShape(
            model=model,
            stream=True,
            text_bytes=ask.input_tokens * BYTES_PER_TOKEN,
            input_tokens=0,
            choices=1,
            max_tokens=ask.max_tokens,
            generates=True,
            truth=Used(ask.input_tokens, ask.output_tokens),
        )
        super().__init__(request_id, ask.tenant, shape, shape.text_bytes)
        self.input_tokens = ask.input_tokens
        self.output_tokens = ask.output_tokens
        self.max_tokens = ask.max_tokens
        self.prefix = ask.prefix
        self.client = client
        self.enough = ask.enough
        self.computed = 0
        self.cached = 0
        self.generated = 0
        self.first_token: float | None = None
        self.ended: float | None = None
        self.end: End | None = None
        self.reason: str | None = None

    def finish(self, now: float, end: End, reason: str | None = None) -> None:
        """It has ended; this happens once."""
        assert self.end is None, f"{self.id} ends twice"
        self.ended, self.end, self.reason = now, end, reason
