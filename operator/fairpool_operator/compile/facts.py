"""What was found about a pool, before anything is made of it or said about it."""

from __future__ import annotations

from dataclasses import dataclass

from fairpool_operator.compile.config import Packed
from fairpool_operator.compile.ownership import Ownership, Standing
from fairpool_operator.compile.references import References
from fairpool_operator.errors import ConfigTooLarge, NameTaken, ObjectRefused, Refused


@dataclass(frozen=True, slots=True)
class Facts:
    """One pool.

    Attributes:
        references: what its references came to.
        refused: why it is refused.
        taken: why the names of its objects cannot be had.
        rejected: why the API server does not take its objects.
        delayed: why its objects cannot be written just now, in sentences; none: they can.
        owners: whose those objects are.
        packed: its configuration; None where the last one stays.
        is_leaving: whether it is being deleted, and its objects with it.
    """

    references: References
    refused: Refused | None
    taken: NameTaken | None
    rejected: ObjectRefused | None
    delayed: str
    owners: Ownership
    packed: Packed | None
    is_leaving: bool = False

    @property
    def changes_nothing(self) -> bool:
        """Whether nothing but conditions is written. Of a pool that is too large only its configuration is not."""
        return self.refused is not None and not isinstance(self.refused, ConfigTooLarge)

    @property
    def gateway_may_run(self) -> bool:
        """Whether a gateway made now would have its configuration and what it mounts."""
        has_config = self.packed is not None or self.owners.of("Secret") is Standing.OURS
        return has_config and not self.references.problems

    @property
    def gateway_is_awaited(self) -> bool:
        """Whether the gateway is not there, and somebody has to do something before it is made."""
        if self.is_leaving or self.owners.of("Deployment") is not Standing.ABSENT:
            return False
        if self.taken is not None or self.rejected is not None:
            return True
        return self.changes_nothing or not self.gateway_may_run
