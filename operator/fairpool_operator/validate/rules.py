"""A definition's rules in CEL, evaluated by the language's own library over the definition's own texts.

What always holds: a rule is looked at where the server would look at it: at every value that is there, defaults filled
in, and where it compares with what was there before, only if there was something. A rule that cannot be evaluated has
failed.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from cel_expr_python import cel
from cel_expr_python.ext import ext_strings

from fairpool_operator.definitions import Schema
from fairpool_operator.manifests import Steps
from fairpool_operator.validate.causes import Cause, Fault, cause
from fairpool_operator.validate.quantities import is_cidr, is_ip, quantity

_OLD: Final = re.compile(r"\boldSelf\b")
_REASONS: Final[Mapping[str, Fault]] = {
    "FieldValueForbidden": Fault.FORBIDDEN,
    "FieldValueRequired": Fault.REQUIRED,
    "FieldValueDuplicate": Fault.DUPLICATE,
}


def check_rules(schema: Schema, value: Any, path: Steps = (), *, before: Any = None) -> Iterator[Cause]:
    """The rules that a value breaks, or its change from what was there `before`, of which items of lists have none."""
    yield from _check(schema, _whole(value), path, _whole(before))


def _check(schema: Schema, value: Any, path: Steps, before: Any) -> Iterator[Cause]:
    if value is None:
        return
    for rule in schema.get("x-kubernetes-validations", ()):
        compares = _OLD.search(rule["rule"]) is not None
        if compares and before is None:
            continue
        if not _holds(rule["rule"], {"self": value, "oldSelf": before} if compares else {"self": value}):
            yield _broken(rule, value, path)
    if isinstance(value, dict):
        known = before if isinstance(before, dict) else {}
        for name, item in value.items():
            inner = schema.get("properties", {}).get(name, schema.get("additionalProperties", {}))
            yield from _check(inner, item, (*path, name), known.get(name))
    elif isinstance(value, list):
        for number, item in enumerate(value):
            yield from _check(schema.get("items", {}), item, (*path, number), None)


def matches(text: str, pattern: str) -> bool:
    """Whether a text has a part that a pattern (RE2) describes."""
    return bool(_compiled("self.matches(pattern)").eval(data={"self": _whole(text), "pattern": pattern}).value())


def _whole(value: Any) -> Any:
    """A value with something else for each NUL, behind which the library takes a text for ended."""
    if isinstance(value, str):
        return value.replace("\0", "\1")
    if isinstance(value, list):
        return [_whole(item) for item in value]
    return {name: _whole(item) for name, item in value.items()} if isinstance(value, dict) else value


def _holds(rule: str, data: Mapping[str, Any]) -> bool:
    return _compiled(rule).eval(data=data).value() is True


def _broken(rule: Mapping[str, Any], value: Any, path: Steps) -> Cause:
    field = tuple(filter(None, rule.get("fieldPath", "").split(".")))
    message = rule.get("message", f"failed rule: {rule['rule']}").strip()
    return cause((*path, *field), _REASONS.get(rule.get("reason", ""), Fault.INVALID), message, value)


@functools.cache
def _compiled(rule: str) -> cel.Expression:
    return _environment().compile(rule)


@functools.cache
def _environment() -> cel.Env:
    """CEL with what Kubernetes adds to it, as far as rules make use of it. A quantity is the text of one here."""
    text, number, truth = cel.Type.STRING, cel.Type.INT, cel.Type.BOOL
    return cel.NewEnv(
        variables={"self": cel.Type.DYN, "oldSelf": cel.Type.DYN, "pattern": text},
        extensions=[ext_strings.ExtStrings()],
        functions=[
            _function("isIP", is_ip, truth, text),
            _function("isCIDR", is_cidr, truth, text),
            _function("quantity", _checked_quantity, text, text),
            _function("compareTo", _compare, number, text, text, is_member=True),
            _function("isGreaterThan", lambda one, other: _compare(one, other) > 0, truth, text, text, is_member=True),
            _function("isLessThan", lambda one, other: _compare(one, other) < 0, truth, text, text, is_member=True),
        ],
    )


def _function(name: str, implementation: Any, result: Any, *parameters: Any, is_member: bool = False) -> Any:
    overload = cel.Overload(
        id=f"{name}_of_text", return_type=result, parameters=list(parameters), is_member=is_member, impl=implementation
    )
    return cel.FunctionDecl(name, [overload])


def _checked_quantity(text: str) -> str:
    quantity(text)
    return text


def _compare(one: str, other: str) -> int:
    left, right = quantity(one), quantity(other)
    return (left > right) - (left < right)
