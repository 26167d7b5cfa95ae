"""Who asks for what, and when: the demand side of a scenario.

An open loop sends each request at its time, whatever became of the others, as a trace does. A closed loop is one client
that waits for an answer before it asks again; enough of them keep a tenant backlogged for as long as one likes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from random import Random
from typing import Final, NamedTuple

from fairpool_lab.errors import SettingsInvalid
from fairpool_lab.traces import TraceRequest


class Ask(NamedTuple):
    """One request as its client means it.

    Attributes:
        arrival: when it arrives, in seconds; of a closed loop, when its client was free to ask.
        tenant: whose it is.
        input_tokens: the length of its prompt; at least 1.
        output_tokens: the length of its answer.
        max_tokens: what its body sets as the most, if anything.
        prefix: the names of the blocks that its prompt begins with, each standing for all of the prompt up to its end.
        leaves_after: how long its client waits for the end of the answer, in seconds; None for as long as it takes.
        patience: how long it waits for a slot; None for as long as it takes.
        enough: how many tokens of the answer satisfy it, so that it leaves; None for all of them.
    """

    arrival: float
    tenant: str
    input_tokens: int
    output_tokens: int
    max_tokens: int | None = None
    prefix: tuple[int, ...] = ()
    leaves_after: float | None = None
    patience: float | None = None
    enough: int | None = None


Sizes = Sequence[tuple[int, int]]
"""Input and output tokens of requests."""


@dataclass(frozen=True, slots=True)
class Clients:
    """Closed loops of one tenant: each client asks again as soon as its last request ended.

    A client that is refused asks again when it was told to. Sizes are drawn by the scenario's seed; one size is no
    draw.

    Attributes:
        tenant: whose they are.
        count: how many clients there are, so how many requests are outstanding at a time.
        sizes: what they ask for, each as likely as the others.
        begin: when they begin to ask.
        until: when they stop.
        pause: how long each thinks before it asks again, in seconds.
        max_tokens: see `Ask`.
        leaves_after: see `Ask`.
        patience: see `Ask`.
        enough: see `Ask`.
    """

    tenant: str
    count: int
    sizes: Sizes
    begin: float = 0.0
    until: float = 600.0
    pause: float = 0.0
    max_tokens: int | None = None
    leaves_after: float | None = None
    patience: float | None = None
    enough: int | None = None

    def __post_init__(self) -> None:
        if self.count < 1 or not self.sizes or min(self.sizes)[0] < 1:
            raise SettingsInvalid(f"the closed loops of {self.tenant} need a client, and prompts of at least a token")
        if 0 in (self.leaves_after, self.patience) and not self.pause:
            raise SettingsInvalid(f"the closed loops of {self.tenant} would ask and leave for ever at the same moment")

    def ask(self, now: float, chance: Random) -> Ask | None:
        """What a client asks for that is free now; None if it is over."""
        if now >= self.until:
            return None
        tokens = self.sizes[0] if len(self.sizes) == 1 else chance.choice(self.sizes)
        return Ask(
            now,
            self.tenant,
            *tokens,
            max_tokens=self.max_tokens,
            leaves_after=self.leaves_after,
            patience=self.patience,
            enough=self.enough,
        )


MAX_TOKENS_RULE: Final = (
    "Where the trace sets no max_tokens, it is the least power of two that the answer fits, doubled up to three times "
    "by chance."
)


def of_trace(
    trace: Iterable[TraceRequest], chance: Random, *, speed: float = 1.0, leaves_after: float | None = None
) -> Iterator[Ask]:
    """The requests of a trace, the first of them at 0 s. An empty prompt counts as one token, as engines have it.

    Args:
        trace: requests in order of arrival.
        chance: what `MAX_TOKENS_RULE` draws by.
        speed: how many seconds of the trace pass in one.
        leaves_after: how long clients wait, see `Ask`.
    """
    first: float | None = None
    for request in trace:
        first = request.arrival if first is None else first
        fits = 1 << max(0, request.output_tokens - 1).bit_length()
        drawn = fits << chance.randrange(4)
        yield Ask(
            (request.arrival - first) / speed,
            request.tenant,
            max(1, request.input_tokens),
            request.output_tokens,
            drawn if request.max_tokens is None else request.max_tokens,
            request.prefix,
            leaves_after,
        )
