"""The decision: from a view of one pool to everything that is wanted for it and said about it. Pure."""

from fairpool_operator.compile.changes import Apply, Changes, changes
from fairpool_operator.compile.compiled import Compiled, Event, PoolStatus, Refusal, Removal, TenantStatus
from fairpool_operator.compile.ownership import is_controlled_by
from fairpool_operator.compile.pool import compile_pool
from fairpool_operator.compile.said import Said, edition_of, is_all_that_happened
from fairpool_operator.compile.settings import Settings
from fairpool_operator.compile.wanted import kinds_of

__all__ = [
    "Apply",
    "Changes",
    "Compiled",
    "Event",
    "PoolStatus",
    "Refusal",
    "Removal",
    "Said",
    "Settings",
    "TenantStatus",
    "changes",
    "compile_pool",
    "edition_of",
    "is_all_that_happened",
    "is_controlled_by",
    "kinds_of",
]
