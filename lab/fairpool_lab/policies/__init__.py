"""The orders that the lab sets side by side, each with where it comes from.

All of them are run by the product's own dispatcher, so what differs between two runs is the order and nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from fairpool_lab.policies.arrival_order import ArrivalOrder
from fairpool_lab.policies.policy import Policy, PolicyFactory, Sight, Unmoved
from fairpool_lab.policies.sfq import StartTimeFairQueueing

__all__ = ["POLICIES", "Listed", "Policy", "PolicyFactory", "Sight", "Unmoved"]


@dataclass(frozen=True, slots=True)
class Listed:
    """A policy as it is offered to a user: by which name, how it is made, and where it comes from, in one line."""

    name: str
    factory: PolicyFactory[Any]
    source: str


_LISTED: Final = (
    Listed("arrival-order", ArrivalOrder, "first come, first served, whoever sent it"),
    Listed("sfq", StartTimeFairQueueing, "Goyal, Vin, Cheng, SIGCOMM 1996: the product's own scheduler"),
)

POLICIES: Final[Mapping[str, Listed]] = MappingProxyType({listed.name: listed for listed in _LISTED})
"""Every policy by its name, from the least fair to what the studies end with."""
