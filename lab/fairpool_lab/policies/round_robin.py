"""Round robin: one request of each backlogged tenant in turn, so that nobody is crowded out by numbers.

Source: Nagle, "On Packet Switches With Infinite Storage", RFC 970 (1985), under "Fairness in packet switching systems":
a queue for each source, served in turn, an empty one passed over. It evens out how many requests go, not what they
cost (§1): a tenant of long requests gets the more.

The source has no weights; `stride` shares turns by weight. A tenant that comes back goes to the end of the round.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import TypeVar

from fairpool_gateway.sfq import Decision
from fairpool_lab.policies.policy import Unmoved
from fairpool_lab.policies.queues import TenantQueues

R = TypeVar("R", bound=Hashable)


class RoundRobin(Unmoved[R], TenantQueues[R]):
    """Whoever had its turn goes to the end."""

    def choose(self) -> str:
        """The backlogged tenant whose turn is the longest ago."""
        return next(iter(self.queues))

    def took(self, decision: Decision[R]) -> None:
        """To the end, if it still waits."""
        if decision.tenant in self.queues:
            self.queues.move_to_end(decision.tenant)
