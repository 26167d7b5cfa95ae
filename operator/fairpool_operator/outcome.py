"""What one look at a pool has come to so far, for whoever decides when to look again."""

from __future__ import annotations

from dataclasses import dataclass, field

from fairpool_operator.errors import ClusterError
from fairpool_operator.view import Unwritten


@dataclass(frozen=True, slots=True)
class Outcome:
    """Filled in as the look goes on.

    Attributes:
        problems: what the API server did not take.
        unwritten: the objects that are not as they are wanted.
        waits: the seconds after which to look again.
        said: of whom a status was said, by uid.
    """

    problems: list[ClusterError] = field(default_factory=list)
    unwritten: list[Unwritten] = field(default_factory=list)
    waits: list[float] = field(default_factory=list)
    said: list[str] = field(default_factory=list)
