"""The health of one endpoint: when it is taken out of the pool, and how it comes back.

A failed connection takes an endpoint out, and so do answers of 502, 503 or 504 that two different tenants saw, or the
probe: one tenant alone might cause them. What tenants see in place of an answer, where an endpoint breaks off or stays
silent, is no better: a 502 or a 504. It stays out for a time that doubles with each failure, then one trial request
decides. A 500 is the request's fault as often as the endpoint's, and tells nothing.

An endpoint that gives up an answer after it began, with a status of 200, counts as one that answered 503. From then on
the beginning of an answer proves nothing, and only one that comes to its end does; until a connection fails, for what
listens there afterwards is another process.

A probe that goes well is no trial, for it asks for no work. But where an endpoint could not be reached, or failed its
probe, it shows that this is over, and the trial need not wait for the end of the time. Of answers that only tenants saw
it shows nothing. What always holds: an endpoint that proves itself to a tenant is good at once and owes nothing, and
the last one that is left is never taken out, nor does it stay out.
"""

from __future__ import annotations

import enum
from typing import Final

FIRST_EJECTION: Final = 5.0
LONGEST_EJECTION: Final = 300.0
"""Seconds out of the pool, the first time and at most."""

SUSPICIOUS: Final = frozenset({502, 503, 504})
"""Answers that an endpoint out of order gives, or a proxy in front of one."""

PROBE: Final = None
"""In place of a tenant: the gateway itself saw it."""


class Standing(enum.Enum):
    """Whether an endpoint is given work: all that fits, none, or one trial request."""

    GOOD = enum.auto()
    EJECTED = enum.auto()
    ON_TRIAL = enum.auto()


GOOD, EJECTED, ON_TRIAL = Standing
"""By themselves, as the states of a request are (`request.py`)."""


class Health:
    """What has been seen of one endpoint.

    Attributes:
        standing: whether it is given work.
        until: when its time out of the pool ends, while it is ejected.
        trial_runs: whether the trial request is in flight.
        ejected: how often it was taken out of the pool, ever.
    """

    __slots__ = (
        "_ejections",
        "_gave_up",
        "_probe_may_end_it",
        "_witness",
        "ejected",
        "standing",
        "trial_runs",
        "until",
    )

    def __init__(self) -> None:
        self.standing = GOOD
        self.until = 0.0
        self.trial_runs = False
        self.ejected = 0
        self._ejections = 0
        self._gave_up = False
        self._witness: str | None = None
        self._probe_may_end_it = False

    @property
    def spotless(self) -> bool:
        """Whether nothing is held against it, so that one more good answer is no news."""
        return self.standing is GOOD and not self._ejections and self._witness is None

    def connect_failed(self, now: float, *, may_eject: bool) -> None:
        """No connection could be made. `may_eject`: whether another endpoint is left."""
        self._gave_up = False
        self._fail(now, may_eject=may_eject, probe_may_end_it=True)

    def answered(self, now: float, status: int, witness: str | None, *, may_eject: bool) -> None:
        """A tenant, or the `PROBE`, saw this status. `may_eject`: whether another endpoint is left."""
        if status not in SUSPICIOUS:
            if witness is not PROBE:
                if not self._gave_up:
                    self._recover()
            elif self._probe_may_end_it:
                self._may_prove_itself()
        else:
            self._suspect(now, witness, may_eject=may_eject)

    def ended(self, now: float, witness: str, *, aborted: bool, may_eject: bool) -> None:
        """An answer to a tenant came to its end, or was given up. `may_eject`: whether another endpoint is left."""
        if aborted:
            self._gave_up = True
            self._suspect(now, witness, may_eject=may_eject)
        elif self._gave_up:
            self._recover()

    def tick(self, now: float) -> None:
        """Time has passed: one whose time is over may prove itself."""
        if now >= self.until:
            self._may_prove_itself()

    def is_needed(self) -> None:
        """Nobody else is left: it may prove itself though its time is not over."""
        self._may_prove_itself()

    def _may_prove_itself(self) -> None:
        if self.standing is EJECTED:
            self.standing = ON_TRIAL
            self.trial_runs = False

    def _recover(self) -> None:
        self.standing = GOOD
        self._ejections = 0
        self._gave_up = False
        self._witness = None

    def _suspect(self, now: float, witness: str | None, *, may_eject: bool) -> None:
        if witness is PROBE or self.standing is ON_TRIAL or self._witness not in {None, witness}:
            self._fail(now, may_eject=may_eject, probe_may_end_it=witness is PROBE)
        else:
            self._witness = witness

    def _fail(self, now: float, *, may_eject: bool, probe_may_end_it: bool) -> None:
        self._witness = None
        if self.standing is EJECTED:
            return
        if not may_eject:
            self._recover()
            return
        self.standing = EJECTED
        self._probe_may_end_it = probe_may_end_it
        self.until = now + min(LONGEST_EJECTION, FIRST_EJECTION * 2.0**self._ejections)
        self._ejections += 1
        self.ejected += 1
