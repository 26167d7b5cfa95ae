"""What a token really takes, from observed times: the weights of input and output tokens in a pool's cost.

A request holds its slot for as long as its tokens take, so over many requests

    seconds = input_rate * input tokens + output_rate * output tokens + fixed

and the ratio of the two rates is that of the weights. The rates are the least squares fit of which none is negative.
How far single requests are from it is told too: engines batch, so the same request takes longer beside others, and a
fit says what is so on average.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Final, NamedTuple

from fairpool_gateway.decision_log import Complete
from fairpool_lab.decisions import Event
from fairpool_lab.measures import history

MOST_WEIGHT: Final = 1000
"""Of a token, in a pool's cost."""

_CLOSE_ENOUGH = 0.05
_LEAST_OBSERVED = 10
_COLUMNS = 3


class Observed(NamedTuple):
    """One request that was answered in full: its tokens, and for how many seconds it held its slot."""

    input_tokens: int
    output_tokens: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Rates:
    """What a token takes, in seconds.

    Attributes:
        input: of a prompt.
        output: of an answer.
        fixed: what every request takes besides.
        explained: the part of the variance of the times that the fit explains, R squared.
        error: the mean distance of a request from the fit, over the mean time.
        observed: how many requests it rests on.
    """

    input: float
    output: float
    fixed: float
    explained: float
    error: float
    observed: int

    def weights(self) -> tuple[int, int]:
        """The least weights of input and output tokens that are within 5 % of the rates' ratio."""
        if not self.input or not self.output:
            return (int(self.input > 0), int(self.output > 0))
        ratio = self.output / self.input
        for least in range(1, 11):
            pair = (least, round(least * ratio)) if ratio >= 1 else (round(least / ratio), least)
            if max(pair) > MOST_WEIGHT:
                break
            if abs(pair[1] / pair[0] / ratio - 1) <= _CLOSE_ENOUGH:
                return pair
        return (1, min(MOST_WEIGHT, round(ratio))) if ratio >= 1 else (min(MOST_WEIGHT, round(1 / ratio)), 1)


def observed(events: Iterable[Event]) -> tuple[Observed, ...]:
    """The requests of a decision log whose endpoints told what they used."""
    events = tuple(events)
    records = history.requests(events)
    found = []
    for event in events:
        if isinstance(event, Complete) and event.used is not None and event.used.told and event.seq in records:
            since = records[event.seq].dispatched
            if since is not None:
                found.append(Observed(event.used.input, event.used.output, event.t - since))
    return tuple(found)


def rates(requests: Sequence[Observed]) -> Rates | None:
    """The fit; None where too few requests, or too much alike, tell nothing."""
    if len(requests) < _LEAST_OBSERVED:
        return None
    rows = [(float(each.input_tokens), float(each.output_tokens), 1.0) for each in requests]
    times = [each.seconds for each in requests]
    mean = sum(times) / len(times)
    variance = sum((seconds - mean) ** 2 for seconds in times)
    fits = [
        (_squares(rows, times, fit), fit)
        for size in range(1, _COLUMNS + 1)
        for columns in combinations(range(_COLUMNS), size)
        if (fit := _least_squares(rows, times, columns)) is not None and min(fit) >= 0
    ]
    if not fits or not variance:
        return None
    squares, fit = min(fits)
    off = sum(abs(seconds - _predicted(row, fit)) for row, seconds in zip(rows, times, strict=True))
    return Rates(*fit, 1 - squares / variance, off / sum(times), len(times))


Row = tuple[float, float, float]


def _least_squares(rows: Sequence[Row], times: Sequence[float], columns: Sequence[int]) -> Row | None:
    """The fit that uses these columns only, by the normal equations; None if they do not determine one."""
    size = len(columns)
    matrix = [
        [sum(row[one] * row[other] for row in rows) for other in columns]
        + [sum(row[one] * seconds for row, seconds in zip(rows, times, strict=True))]
        for one in columns
    ]
    for pivot in range(size):
        best = max(range(pivot, size), key=lambda line: abs(matrix[line][pivot]))
        matrix[pivot], matrix[best] = matrix[best], matrix[pivot]
        if abs(matrix[pivot][pivot]) < 1e-9 * (1 + abs(matrix[pivot][size])):
            return None
        for line in range(size):
            if line != pivot:
                factor = matrix[line][pivot] / matrix[pivot][pivot]
                matrix[line] = [a - factor * b for a, b in zip(matrix[line], matrix[pivot], strict=True)]
    solved = {column: matrix[line][size] / matrix[line][line] for line, column in enumerate(columns)}
    return (solved.get(0, 0.0), solved.get(1, 0.0), solved.get(2, 0.0))


def _predicted(row: Row, fit: Row) -> float:
    return sum(value * rate for value, rate in zip(row, fit, strict=True))


def _squares(rows: Sequence[Row], times: Sequence[float], fit: Row) -> float:
    return sum((seconds - _predicted(row, fit)) ** 2 for row, seconds in zip(rows, times, strict=True))
