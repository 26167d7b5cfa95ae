"""Which failed attempts may be repeated, so that a sick endpoint costs its tenants little and the others less.

An attempt that failed before its first byte is repeated on at most two other endpoints; one whose connection was lost
after the whole request was sent, once in all, for the endpoint may have done the work. Over time at most one dispatch
in ten is repeated, or the retries of a failing pool would be its load.
"""

from __future__ import annotations

from typing import Final

MOST_OTHERS: Final = 2
"""Endpoints that a request is tried on beside its first."""

_PER_DISPATCH = 0.1
_MOST_SAVED = 100.0
_AT_FIRST = 10.0


class RetryBudget:
    """What may still be repeated: each dispatch earns a tenth of a retry, up to a hundred of them."""

    def __init__(self) -> None:
        self._saved = _AT_FIRST

    def earn(self) -> None:
        """A request was dispatched."""
        self._saved = min(_MOST_SAVED, self._saved + _PER_DISPATCH)

    @property
    def allows(self) -> bool:
        """Whether one more may be repeated."""
        return self._saved >= 1.0

    def spend(self) -> None:
        """One was repeated."""
        self._saved -= 1.0
