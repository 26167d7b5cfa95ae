"""The one protocol between the dispatcher and whatever decides whose request goes next.

`sfq.Scheduler` is the product's order and says what each method promises. The protocol exists so that the lab can run
other orders through the same dispatcher, and set them beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping
from typing import Protocol, TypeVar

from fairpool_gateway.sfq import Decision, Meter

R = TypeVar("R", bound=Hashable)


class Ordering(Protocol[R]):
    """Whose request goes next. `v` is virtual time, `waiting` the number of requests that wait."""

    v: int
    waiting: int

    def identify(self, tenant: str) -> str:
        """The tenant under which this one's requests are queued."""

    def weight(self, tenant: str) -> int:
        """The weight of the tenant's next charge."""

    def lags(self, tenant: str) -> bool:
        """Whether the tenant has nothing waiting, and no lead that it would rejoin with."""

    def arrive(self, tenant: str, request: R) -> str:
        """Append a request to its tenant's queue."""

    def remove(self, tenant: str, request: R) -> None:
        """Take a waiting request out of the queue."""

    def dispatch(self) -> Decision[R] | None:
        """A free slot asks for the next request."""

    def reweigh(self, tenant: str, weight: int | None) -> None:
        """Change, or with None take away, the tenant's own weight."""

    def reweigh_default(self, weight: int) -> None:
        """Change everybody else's weight."""

    def meters(self) -> Iterator[Meter]:
        """What can be seen of every tenant that is remembered."""


class OrderingFactory(Protocol[R]):
    """Makes the order of a pool; the classes themselves are factories."""

    def __call__(
        self, price: Callable[[R], int], *, weights: Mapping[str, int], default_weight: int, max_tenants: int
    ) -> Ordering[R]:
        """Make one."""
