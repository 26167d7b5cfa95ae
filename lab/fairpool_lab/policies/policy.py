"""What the lab asks of an order of requests beyond the dispatcher's protocol, so that all can be set side by side.

SFQ needs to know nothing but arrivals and free slots. Other orders count what was computed, watch the clock, or look
into a cache. A `Policy` is an `Ordering` that is told these things as they happen; what it may ask is its `Sight`.

Whatever a policy decides by, its decisions carry the charge that SFQ would have made, `sfq.charge(cost, weight)`. So
every policy's decision log is valid, and all are measured alike.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from fairpool_gateway.ordering import Ordering

R = TypeVar("R", bound=Hashable)


def _none(_request: object) -> int:
    return 0


@dataclass(frozen=True)
class Sight(Generic[R]):
    """What a policy can see of the pool besides the price of a request; by default it sees nothing.

    Attributes:
        input_tokens: how long a request's prompt is.
        output_tokens: how long its answer will be, which only an oracle knows.
        cached: how many tokens of its prompt are in a prefix cache now.
        input_weight: what an input token costs in this pool.
        output_weight: what an output token costs.
    """

    input_tokens: Callable[[R], int] = _none
    output_tokens: Callable[[R], int] = _none
    cached: Callable[[R], int] = _none
    input_weight: int = 1
    output_weight: int = 2

    def cost(self, input_tokens: int, output_tokens: int) -> int:
        """The cost of so many tokens."""
        return self.input_weight * input_tokens + self.output_weight * output_tokens


class Policy(Ordering[R], Protocol[R]):
    """An order that is told, besides, how time passes and what becomes of the requests it dispatched.

    It is told before the dispatcher is, so that the decision that a free slot brings about knows of it. `dispatch` may
    return None although somebody waits, where the policy limits rates; `next_change` then says when to ask again. No
    other policy leaves a slot free while somebody waits.
    """

    def advance(self, now: float) -> None:
        """It is this late, in seconds; called before each event, and never with less than before."""

    def progressed(self, request: R, input_tokens: int, output_tokens: int) -> None:
        """So many tokens of a dispatched request were computed for the first time since the last call."""

    def finished(self, request: R) -> None:
        """A dispatched request gave back its slot, for whatever reason; nothing more is said of it."""

    def next_change(self) -> float | None:
        """When a request that is held back although slots are free may go; None if time alone never frees one."""


class PolicyFactory(Protocol[R]):
    """Makes a policy; the classes themselves are factories, and serve the dispatcher as an `OrderingFactory` too."""

    def __call__(
        self,
        price: Callable[[R], int],
        *,
        weights: Mapping[str, int],
        default_weight: int,
        max_tenants: int,
        sight: Sight[R] = ...,
    ) -> Policy[R]:
        """Make one."""


class Hearing(Generic[R]):
    """What a policy is told beyond arrivals and dispatches, and what it does about it: nothing, unless it overrides."""

    def advance(self, now: float) -> None:
        """Time changes nothing."""

    def progressed(self, request: R, input_tokens: int, output_tokens: int) -> None:
        """What a request turns out to use changes nothing."""

    def finished(self, request: R) -> None:
        """That a request is over changes nothing."""

    def next_change(self) -> float | None:
        """Nobody is ever held back while a slot is free."""
        return None


class Unmoved(Hearing[R]):
    """An order that overrides none of it: nothing moves it but arrivals and dispatches, so it need not be told."""
