"""The engines that a comparison can have, by the names that a command takes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Final

from fairpool_gateway.cost import CostModel, Used
from fairpool_lab.engine.alone import seconds_alone
from fairpool_lab.errors import OptionInvalid
from fairpool_lab.simulation import ContinuousBatching, Engine, FixedService
from fairpool_lab.simulation.gpus import GPUS, Gpu

FIXED: Final = "fixed"
FIXED_RATE: Final = 1000.0
"""Tokens per second of a slot, unless the name says otherwise: `fixed:250`."""


@dataclass(frozen=True, slots=True)
class Chosen:
    """One kind of engine.

    Attributes:
        name: as it was given.
        slots: how many requests it has at once, unless it is said otherwise.
        longest: the most tokens that a request may have; None for any number.
        make: makes one, given what tokens weigh and the tokens of a block of its prefix cache, None for no cache.
        alone: the seconds that a request takes in one that does nothing else, given what tokens weigh; without a cache.
    """

    name: str
    slots: int
    longest: int | None
    make: Callable[[CostModel, int | None], Engine]
    alone: Callable[[CostModel, Used], float]


def listed() -> tuple[tuple[str, str], ...]:
    """Every name with its source."""
    fixed = (f"{FIXED}[:RATE]", f"a slot serves RATE tokens of cost per second ({FIXED_RATE:g}): the theory's server")
    return (fixed, *((gpu.name, gpu.source) for gpu in GPUS.values()))


def named(name: str) -> Chosen:
    """The engine of that name.

    Raises:
        OptionInvalid: there is none.
    """
    kind, colon, rate = name.partition(":")
    if kind == FIXED:
        return _fixed(name, rate if colon else str(FIXED_RATE))
    gpu = GPUS.get(name)
    if gpu is None:
        raise OptionInvalid(f"--engine: {name!r} is none of {', '.join(known for known, _ in listed())}")
    return _gpu(gpu)


def _fixed(name: str, rate: str) -> Chosen:
    try:
        tokens_per_second = float(rate)
    except ValueError:
        tokens_per_second = 0.0
    if not 0 < tokens_per_second < float("inf"):
        raise OptionInvalid(f"--engine: {rate!r} is no rate; write fixed:250 for 250 tokens per second")

    def make(cost: CostModel, _: int | None) -> Engine:
        return FixedService(tokens_per_second, partial(_weigh, cost))

    return Chosen(name, 1, None, make, lambda cost, used: _weigh(cost, used) / tokens_per_second)


def _weigh(cost: CostModel, used: Used) -> int:
    return cost.input_weight * used.input + cost.output_weight * used.output


def _gpu(gpu: Gpu) -> Chosen:
    return Chosen(
        gpu.name,
        gpu.slots,
        gpu.limits.max_model_len,
        lambda _, block_tokens: ContinuousBatching(gpu.limits, block_tokens),
        lambda _, used: seconds_alone(gpu.limits, used.input, used.output),
    )
