"""One field of a trace: what it says, or in a ValueError what is wrong with it and what it should have been."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

Fields = Mapping[str, Any]
"""One row: strings as in CSV, or whatever JSON has."""

MOST_TOKENS: Final = 10**9
"""More than any model reads or writes: a greater number is something else."""


_QUOTED = 60
"""Characters that a message quotes of what is wrong, which may be a whole prompt."""


def tokens(fields: Fields, column: str) -> int:
    """A number of tokens."""
    value = _present(fields, column)
    number = int(value) if isinstance(value, str) and value.isdecimal() and len(value) < 20 else value
    if not isinstance(number, int) or isinstance(number, bool) or not 0 <= number <= MOST_TOKENS:
        raise _wrong(column, f"a whole number of tokens from 0 to {MOST_TOKENS:,}", value)
    return number


def optional_tokens(fields: Fields, column: str) -> int | None:
    """A number of tokens, or nothing."""
    value = fields.get(column)
    return None if value is None or value == "" else tokens(fields, column)


def name(fields: Fields, column: str) -> str:
    """A name, which may be a number."""
    value = _present(fields, column)
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise _wrong(column, "a name", value)
    if value == "":
        raise ValueError(f"{column} is empty")
    return str(value)


def blocks(fields: Fields, column: str) -> tuple[int, ...]:
    """The blocks of a prompt; none if there is no such column, or in CSV, which has no lists."""
    value = fields.get(column, "")
    if isinstance(value, str):
        return ()
    if not isinstance(value, list) or not all(isinstance(block, int) for block in value):
        raise _wrong(column, "a list of whole numbers, one for each block of the prompt", value)
    return tuple(value)


def seconds(fields: Fields, column: str, ticks: int) -> float:
    """A time in seconds: a number from 0 on, so many to a second, or a date with a time, in UTC unless it says."""
    value = _present(fields, column)
    number = _number(value) / ticks
    if math.isnan(number):
        number = _moment(value)
    if not 0 <= number < math.inf:
        kinds = "seconds from 0 on" if ticks == 1 else f"1/{ticks} seconds from 0 on"
        raise _wrong(column, f"a number of {kinds}, or a date with a time", value)
    return number


def is_date(fields: Fields, column: str) -> bool:
    """Whether a time is given as a date: then only its distance from others means anything."""
    value = fields.get(column)
    return math.isnan(_number(value)) and not math.isnan(_moment(value))


def _number(value: object) -> float:
    try:
        return float(value) if isinstance(value, str | int | float) and not isinstance(value, bool) else math.nan
    except (ValueError, OverflowError):
        return math.nan


def _moment(value: object) -> float:
    try:
        moment = datetime.fromisoformat(value.strip()) if isinstance(value, str) else None
    except ValueError:
        moment = None
    if moment is None:
        return math.nan
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def _wrong(column: str, what: str, value: object) -> ValueError:
    said = repr(value)
    return ValueError(f"{column} is {what}, not {said if len(said) <= _QUOTED else said[:_QUOTED] + '…'}")


def _present(fields: Fields, column: str) -> Any:
    if fields.get(column) is None:
        raise ValueError(f"{column} is missing")
    return fields[column]
