"""Leadership by a Lease, so that of several operators one writes.

A Lease says who holds it, and since when it was renewed; wall clocks may differ, so nobody compares that time with
his own. Whoever does not hold it takes it once it stayed unchanged for its duration by his own clock; whoever holds
it stops writing when two thirds of the duration have passed since he *sent* the renewal that succeeded last. The
server accepts a change of the version that was looked at only, so of two that take it at once one succeeds. What
always holds, if clocks run equally fast within a third: nobody takes it while the holder still writes. The third is
also what a request that was sent in the last moment has to end in. (But if somebody deletes it, and a process that
never saw it starts before its holder makes it again, a third of the duration later at most, both write for that time.)

`Claim` is the pure part, which is told the time; `Leadership` speaks with the server.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from fairpool_operator.cluster import LEASE, Cluster
from fairpool_operator.errors import Conflict, Forbidden, NotLeading, OperatorError
from fairpool_operator.view import Object

log = logging.getLogger(__name__)

DURATION: Final = 15.0
"""Seconds after which a Lease that is not renewed may be taken by another."""


@dataclass(slots=True)
class Claim:
    """What one candidate knows of a Lease. Times are in seconds, on its own clock that never goes back."""

    identity: str
    duration: float = DURATION
    held_until: float = float("-inf")
    _seen: tuple[str, str] = ("", "")
    _seen_at: float = float("-inf")
    _seen_for: float = 0.0

    def holds(self, now: float) -> bool:
        """Whether this candidate may write."""
        return now < self.held_until

    def renewed(self, sent: float) -> None:
        """A renewal that was sent then has succeeded."""
        self.held_until = sent + self.duration * 2 / 3

    def lost(self) -> None:
        """Somebody else may hold it."""
        self.held_until = float("-inf")

    def may_take(self, spec: Object, now: float) -> bool:
        """Whether a Lease with this spec, just read, is free to be taken."""
        holder = spec.get("holderIdentity") or ""
        seen = (holder, spec.get("renewTime") or "")
        if seen != self._seen:
            self._seen, self._seen_at = seen, now
            self._seen_for = float(spec.get("leaseDurationSeconds") or 0)
        return holder in {"", self.identity} or now >= self._seen_at + self._seen_for

    def may_make(self, now: float) -> bool:
        """Whether a Lease that is not there may be made.

        Its holder may not have missed it yet: whoever saw it held waits as if it had been renewed just now.
        """
        holder, _ = self._seen
        return self.may_take({"holderIdentity": holder, "leaseDurationSeconds": self._seen_for}, now)


class Leadership:
    """One candidate for a Lease, from `campaign` on until `release`."""

    def __init__(
        self,
        cluster: Cluster,
        namespace: str,
        name: str,
        identity: str,
        *,
        duration: float = DURATION,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._cluster = cluster
        self._place = (namespace, name)
        self._claim = Claim(identity, duration)
        self._lease: Object | None = None
        self._now = now
        self._clock = asyncio.get_running_loop().time

    @property
    def held(self) -> bool:
        """Whether this process may write."""
        return self._claim.holds(self._clock())

    def guard(self) -> None:
        """Let nothing pass that this process may not write.

        Raises:
            NotLeading: another process may be writing by now.
        """
        if not self.held:
            raise NotLeading("another operator leads, or may be about to")

    async def campaign(self, renewed: Callable[[bool], None]) -> None:
        """Take the Lease whenever it is free, and keep it.

        `renewed` is called each time that succeeds, with whether this process did not lead until then. A renewal may
        come late, so that for a moment nothing was to be written although nobody else took over.
        """
        led = False
        while True:
            sent = self._clock()
            try:
                await self._attempt(sent)
            except Conflict:
                self._claim.lost()
                self._lease = None
            except OperatorError as problem:
                level = logging.ERROR if isinstance(problem, Forbidden) else logging.WARNING
                log.log(level, "the Lease cannot be had for now: %s", problem)
                self._lease = None
            led_before, led = led, self.held
            if led and not led_before:
                log.info("leading, as %s", self._claim.identity)
            elif led_before and not led:
                log.warning("leading no more")
            if led:
                renewed(not led_before)
            await asyncio.sleep(self._claim.duration / 3)

    async def release(self) -> None:
        """Write no more, and let another take over as soon as it looks."""
        held = self.held
        self._claim.lost()
        if held and self._lease is not None:
            spec = {**self._lease["spec"], "holderIdentity": "", "leaseDurationSeconds": 1}
            with suppress(OperatorError):
                await self._cluster.replace(LEASE, {**self._lease, "spec": spec})

    async def _attempt(self, sent: float) -> None:
        namespace, name = self._place
        held = self._claim.holds(sent)
        lease = self._lease if held else None
        if lease is None:
            lease = await self._cluster.get(LEASE, namespace, name)
        if lease is None:
            if not held and not self._claim.may_make(sent):
                return
            fresh = {
                "apiVersion": LEASE.api_version,
                "kind": LEASE.name,
                "metadata": {"namespace": namespace, "name": name},
            }
            self._lease = await self._cluster.create(LEASE, {**fresh, "spec": self._spec({}, taken=True)})
            self._claim.renewed(sent)
            return
        spec = lease.get("spec") or {}
        if not held and not self._claim.may_take(spec, sent):
            return
        taken = spec.get("holderIdentity") != self._claim.identity
        self._lease = await self._cluster.replace(LEASE, {**lease, "spec": self._spec(spec, taken=taken)})
        self._claim.renewed(sent)

    def _spec(self, before: Object, *, taken: bool) -> Object:
        now = self._now().strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        return {
            "holderIdentity": self._claim.identity,
            "leaseDurationSeconds": max(1, round(self._claim.duration)),
            "acquireTime": now if taken else before.get("acquireTime", now),
            "renewTime": now,
            "leaseTransitions": (before.get("leaseTransitions") or 0) + (1 if taken and before else 0),
        }
