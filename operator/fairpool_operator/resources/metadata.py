"""What Kubernetes itself keeps about every resource, as far as anything is decided by it."""

from __future__ import annotations

from fairpool_gateway.config.quantities import Instant
from fairpool_operator.resources.part import Part


class Metadata(Part):
    """Which resource this is, and which edition of it.

    `generation` counts the edits of its spec. `uid` tells it from another that had the name before.
    """

    name: str
    namespace: str
    uid: str
    generation: int
    creation_timestamp: Instant
    deletion_timestamp: Instant | None = None

    @property
    def age(self) -> tuple[object, ...]:
        """Sorts the oldest resource first, and tells apart those of one second."""
        return self.creation_timestamp, self.namespace, self.name
