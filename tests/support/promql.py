"""What an expression of PromQL gives on series that a test makes up: as much of the language as the alerts speak.

A series is what Prometheus would have seen for hours: a gauge has its value now and the least that it has been of late,
a counter the amount by which it grows each second. What the alerts do not speak is refused, never guessed.
"""

from __future__ import annotations

import math
import operator
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import promql_parser
from promql_parser import MatchOp


@dataclass(frozen=True)
class Series:
    """One series; `least` is by default the value, which then has not changed."""

    name: str
    labels: Mapping[str, str] = field(default_factory=dict)
    value: float = 0.0
    least: float | None = None
    each_second: float = 0.0


Labels = frozenset[tuple[str, str]]
Vector = dict[Labels, float]

SHORTEST: Final = 60.0
"""Seconds that a range has at least: four scrapes of 15 s, of which `rate` needs two, and any may fail."""

_MATCHES: Final[Mapping[str, Callable[[str, str], bool]]] = {
    str(MatchOp.Equal): operator.eq,
    str(MatchOp.NotEqual): operator.ne,
    str(MatchOp.Re): lambda value, pattern: re.fullmatch(pattern, value) is not None,
}
_OVER: Final[Mapping[str, Callable[[Series, float], float]]] = {
    "rate": lambda series, _: series.each_second,
    "increase": lambda series, seconds: series.each_second * seconds,
    "min_over_time": lambda series, _: series.value if series.least is None else series.least,
}


def evaluate(expression: str, series: Iterable[Series]) -> list[dict[str, str]]:
    """The labels of what an expression gives: an alert fires for each."""
    return [dict(labels) for labels in _vector(promql_parser.parse(expression), list(series))]


def _token(expression: str) -> str:
    """By what number the parser knows an operator; its tokens tell nothing else of themselves."""
    return _operator(promql_parser.parse(expression))


def _operator(node: Any) -> str:
    found = re.search(r"op: TokenType\(\s*(\d+)", repr(node))
    assert found
    return found[1]


_COMPARES: Final = {
    _token("a == 1"): operator.eq,
    _token("a != 1"): operator.ne,
    _token("a > 1"): operator.gt,
    _token("a < 1"): operator.lt,
}
_DIVIDES, _AND, _OR = _token("a / b"), _token("a and b"), _token("a or b")
_AGGREGATES: Final[Mapping[str, Callable[[Iterable[float]], float]]] = {
    _token("sum(a)"): sum,
    _token("max(a)"): max,
    _token("min(a)"): min,
}


def _vector(node: Any, series: list[Series]) -> Vector:
    match node:
        case promql_parser.ParenExpr():
            return _vector(node.expr, series)
        case promql_parser.VectorSelector():
            return {_labels(each): each.value for each in _selected(node, series)}
        case promql_parser.Call():
            return _called(node, series)
        case promql_parser.AggregateExpr():
            return _aggregated(node, series)
        case promql_parser.BinaryExpr():
            return _combined(node, series)
    raise NotImplementedError(type(node).__name__)


def _selected(node: Any, series: list[Series]) -> list[Series]:
    assert node.offset is None
    assert node.at is None
    assert not node.matchers.or_matchers
    return [
        each
        for each in series
        if each.name == node.name
        and all(_MATCHES[str(one.op)](each.labels.get(one.name, ""), one.value) for one in node.matchers.matchers)
    ]


def _labels(series: Series) -> Labels:
    return frozenset(series.labels.items())


def _called(node: Any, series: list[Series]) -> Vector:
    (argument,) = node.args
    if node.func.name == "absent":
        return {} if _vector(argument, series) else {_named_by(argument): 1.0}
    over, seconds = _OVER[node.func.name], argument.range.total_seconds()
    assert seconds >= SHORTEST
    return {_labels(each): over(each, seconds) for each in _selected(argument.vector_selector, series)}


def _named_by(argument: Any) -> Labels:
    """The labels of what is absent: those that a selector says it would have; no other expression names any."""
    if not isinstance(argument, promql_parser.VectorSelector):
        return frozenset()
    equal = (one for one in argument.matchers.matchers if str(one.op) == str(MatchOp.Equal))
    return frozenset((one.name, one.value) for one in equal)


def _aggregated(node: Any, series: list[Series]) -> Vector:
    assert node.modifier.type == promql_parser.AggModifierType.By
    groups: dict[Labels, list[float]] = defaultdict(list)
    for labels, value in _vector(node.expr, series).items():
        groups[frozenset(each for each in labels if each[0] in node.modifier.labels)].append(value)
    return {labels: _AGGREGATES[_operator(node)](values) for labels, values in groups.items()}


def _combined(node: Any, series: list[Series]) -> Vector:
    assert getattr(node.modifier, "matching", None) is None
    assert not getattr(node.modifier, "return_bool", False)
    left, kind = _vector(node.lhs, series), _operator(node)
    if kind in _COMPARES:
        assert isinstance(node.rhs, promql_parser.NumberLiteral)
        return {labels: value for labels, value in left.items() if _COMPARES[kind](value, node.rhs.val)}
    right = _vector(node.rhs, series)
    if kind == _OR:
        return {**right, **left}
    both = {labels: value for labels, value in left.items() if labels in right}
    if kind == _AND:
        return both
    assert kind == _DIVIDES
    return {labels: _ratio(value, right[labels]) for labels, value in both.items()}


def _ratio(value: float, by: float) -> float:
    """As floating point has it, which Python's division has not."""
    return value / by if by else math.copysign(math.inf, value) if value else math.nan
