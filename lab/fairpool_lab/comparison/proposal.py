"""A calibration's words: what was found about costs, and the lines of a FairPool that follow from it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec
from rich import box
from rich.table import Table
from rich.text import Text

from fairpool_gateway.cost import OutputEstimator
from fairpool_lab import decisions
from fairpool_lab.comparison.calibration import Rates, observed, rates
from fairpool_lab.comparison.estimating import Foretold, foretell
from fairpool_lab.comparison.setup import Setup
from fairpool_lab.errors import LogInvalid
from fairpool_lab.simulation.demand import MAX_TOKENS_RULE

_POOLS = {estimator.value for estimator in OutputEstimator}
"""Estimators that a pool can have; the others show what these are worth."""


@dataclass(frozen=True, slots=True)
class Proposal:
    """What was found.

    Attributes:
        weights: of input and output tokens.
        rates: what they follow from; None where the trace tells no times, and the weights are the defaults.
        estimators: how well each foretells costs, weighed so.
        drawn: whether `max_tokens` was not told by the trace.
    """

    weights: tuple[int, int]
    rates: Rates | None
    estimators: tuple[Foretold, ...]
    drawn: bool

    @property
    def estimator(self) -> str:
        """The one that leaves shares truest, of those that a pool can have and the trace can tell of."""
        told = _POOLS - {OutputEstimator.MAX_TOKENS_RATIO.value} if self.drawn else _POOLS
        return min((each for each in self.estimators if each.estimator in told), key=_by_share).estimator

    def as_json(self) -> str:
        """All of it, for programs."""
        told = {
            "input_weight": self.weights[0],
            "output_weight": self.weights[1],
            "output_estimator": self.estimator,
            "rates": self.rates,
            "estimators": self.estimators,
            "max_tokens_drawn": self.drawn,
        }
        return msgspec.json.encode(told).decode()

    def shown(self) -> Iterator[Table | Text]:
        """All of it, for people."""
        yield Text(_about(self.rates))
        table = Table(box=box.SIMPLE_HEAD, collapse_padding=True, pad_edge=False)
        table.add_column("estimator")
        for heading in ("bias", "error of\na request", "worst bias\nof a tenant", "share\nerror"):
            table.add_column(heading, justify="right")
        for each in self.estimators:
            table.add_row(
                each.estimator,
                f"{each.bias:+.1%}",
                f"{each.error:.1%}",
                f"{each.worst_bias:+.1%}",
                f"{each.share_error:.2%}",
            )
        yield table
        if self.drawn:
            yield Text(f"MaxTokensRatio is tried with limits of our own, and so not proposed. {MAX_TOKENS_RULE}\n")
        weights = f"inputWeight: {self.weights[0]}, outputWeight: {self.weights[1]}"
        yield Text(f"For the FairPool's spec:\n\n  cost: {{{weights}, outputEstimator: {self.estimator}}}")


def propose(path: Path, setup: Setup) -> Proposal:
    """Fit what the file tells of times, and try every estimator on its requests."""
    fit = rates(observed(_events(path)))
    weights = (setup.cost.input_weight, setup.cost.output_weight) if fit is None else fit.weights()
    weighed = replace(setup, cost=replace(setup.cost, input_weight=weights[0], output_weight=weights[1]))
    drawn = any(request.max_tokens is None for request in setup.trace)
    return Proposal(weights, fit, foretell(weighed), drawn)


def _events(path: Path) -> tuple[decisions.Event, ...]:
    """What a decision log tells; nothing where the file is another trace, which was read already and makes sense."""
    try:
        return decisions.read(path).events
    except LogInvalid:
        return ()


def _by_share(foretold: Foretold) -> tuple[float, str]:
    return foretold.share_error, foretold.estimator


def _about(fit: Rates | None) -> str:
    if fit is None:
        return "This trace tells no times, as a gateway's decision log does: the weights stay at their defaults.\n"
    return (
        f"Over {fit.observed:,} requests, a token of a prompt takes {1000 * fit.input:.3g} ms of a slot, one of an "
        f"answer {1000 * fit.output:.3g} ms,\nand a request {1000 * fit.fixed:.3g} ms besides. That explains "
        f"{fit.explained:.0%} of how the times differ; a request is {fit.error:.0%} off on average.\n"
    )
