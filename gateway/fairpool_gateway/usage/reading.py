"""What every reader of an answer promises, and what it found."""

from __future__ import annotations

from typing import Protocol

import msgspec

from fairpool_gateway.cost import Used


class Reading(msgspec.Struct, frozen=True):
    """What an answer said of itself.

    Attributes:
        used: the tokens that its endpoint counted, or None if it told none.
        events: the events of a stream that carried content, one for each choice that got some; 0 if it was no stream.
        failed: whether it said itself that it went wrong, so that it teaches nothing, though its bytes pass as they
            are: an error after a status of 200, or an end because the endpoint gave up.
        aborted: whether it failed because the endpoint gave it up, which tells of the endpoint, not of the request.
    """

    used: Used | None
    events: int
    failed: bool
    aborted: bool = False


class UsageReader(Protocol):
    """Reads one answer. Holds a bounded part of it, and never raises, whatever the bytes."""

    def feed(self, data: bytes) -> None:
        """Look at the next bytes; how they are split makes no difference."""
        ...

    def finish(self) -> Reading:
        """What the answer said, after its last byte."""
        ...


class Unread:
    """For answers in a form that is not understood."""

    def feed(self, data: bytes) -> None:
        """Look away."""

    def finish(self) -> Reading:
        """Nothing is known."""
        return Reading(None, 0, failed=False)
