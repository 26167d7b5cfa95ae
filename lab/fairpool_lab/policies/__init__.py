"""The orders that the lab sets side by side, each with where it comes from.

All of them are run by the product's own dispatcher, so what differs between two runs is the order and nothing else. The
fluid GPS of Parekh and Gallager, which several of them approximate, serves all at once and makes no decision: it is no
policy but the reference, `measures.fluid`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from types import MappingProxyType
from typing import Any, Final

from fairpool_lab.policies.arrival_order import ArrivalOrder
from fairpool_lab.policies.completely_fair import CompletelyFair
from fairpool_lab.policies.deficit_longest_prefix import DeficitLongestPrefixMatch
from fairpool_lab.policies.deficit_round_robin import DeficitRoundRobin
from fairpool_lab.policies.equinox import Equinox
from fairpool_lab.policies.policy import Policy, PolicyFactory, Sight, Unmoved
from fairpool_lab.policies.requests_per_minute import RequestsPerMinute
from fairpool_lab.policies.round_robin import RoundRobin
from fairpool_lab.policies.sfq import StartTimeFairQueueing
from fairpool_lab.policies.stride import Stride
from fairpool_lab.policies.virtual_token_counter import (
    LeastCounterFirst,
    VirtualTokenCounter,
    VirtualTokenCounterOracle,
    VirtualTokenCounterPredicting,
)
from fairpool_lab.policies.weighted_fair_queueing import WeightedFairQueueing

__all__ = ["POLICIES", "Listed", "Policy", "PolicyFactory", "Sight", "Unmoved", "named"]


@dataclass(frozen=True, slots=True)
class Listed:
    """A policy as it is offered to a user.

    Attributes:
        name: what it is asked for by.
        factory: how it is made.
        source: where it comes from, in one line.
        setting: the factory's argument that a number behind the name sets, as in `rpm:30`; None if there is none.
    """

    name: str
    factory: PolicyFactory[Any]
    source: str
    setting: str | None = None

    @property
    def usage(self) -> str:
        """The name, and what may stand behind it."""
        return self.name if self.setting is None else f"{self.name}[:{self.setting.upper()}]"


_LISTED: Final = (
    Listed("arrival-order", ArrivalOrder, "first come, first served, whoever sent it"),
    Listed("rpm", RequestsPerMinute, "requests per minute (20): the baseline of Sheng et al., OSDI 2024", "per_minute"),
    Listed("round-robin", RoundRobin, "Nagle, RFC 970, 1985: one request each in turn"),
    Listed("stride", Stride, "Waldspurger, Weihl, MIT/LCS/TM-528, 1995: turns by weight"),
    Listed(
        "drr",
        DeficitRoundRobin,
        "Shreedhar, Varghese, SIGCOMM 1995: quanta of cost (1024) in turn, paid in advance",
        "quantum",
    ),
    Listed("wfq", WeightedFairQueueing, "Demers, Keshav, Shenker, SIGCOMM 1989: who would end first in a fluid GPS"),
    Listed("sfq", StartTimeFairQueueing, "Goyal, Vin, Cheng, SIGCOMM 1996: the product's own scheduler"),
    Listed("cfs", CompletelyFair, "Molnar, Linux CFS, 2007: least used first, counted as it is used"),
    Listed("lcf", LeastCounterFirst, "Sheng et al., OSDI 2024: VTC without its lift, their baseline"),
    Listed("vtc", VirtualTokenCounter, "Sheng et al., OSDI 2024, Algorithm 2: least tokens served first, weighted"),
    Listed(
        "vtc-predict",
        VirtualTokenCounterPredicting,
        "Sheng et al., OSDI 2024: VTC that predicts answers by those so far",
    ),
    Listed("vtc-oracle", VirtualTokenCounterOracle, "Sheng et al., OSDI 2024: VTC that knows the lengths of answers"),
    Listed(
        "dlpm",
        DeficitLongestPrefixMatch,
        "Cao et al., arXiv 2501.14312, 2025: longest cached prefix, in quanta of cost (4096)",
        "quantum",
    ),
    Listed(
        "equinox", Equinox, "Wei et al., arXiv 2508.16646, 2025, as far as its abstract tells; the formulas are our own"
    ),
)

POLICIES: Final[Mapping[str, Listed]] = MappingProxyType({listed.name: listed for listed in _LISTED})
"""Every policy by its name."""


def named(name: str) -> Listed | None:
    """The policy of that name, set by the number behind it if there is one; None if there is no such policy."""
    kind, colon, number = name.partition(":")
    listed = POLICIES.get(kind)
    if listed is None or not colon:
        return listed
    if listed.setting is None or not number.isdecimal() or not int(number):
        return None
    setting: dict[str, Any] = {listed.setting: int(number)}
    return replace(listed, name=name, factory=partial(listed.factory, **setting))
