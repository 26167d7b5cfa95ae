"""Durations, instants, sizes and counts as people write them, so that every file says its units and none is misread.

Durations follow the Gateway API's rule (GEP-2257): up to four whole numbers, each with its unit `h`, `m`, `s` or
`ms`; a number alone is refused, for it could mean anything. Sizes follow Kubernetes' quantities: a whole number of
bytes, alone or with one suffix. Instants are RFC 3339's, whose time zone is part of them. Inside the gateway a duration
is seconds, a size is bytes and an instant is in UTC. What always holds: writing a quantity and reading it again gives
the same one.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Annotated, Final

from pydantic import BeforeValidator, PlainSerializer

from fairpool_gateway.config.shown import shown

_DURATION: Final = re.compile(r"(?:[0-9]{1,5}(?:h|ms|m|s)){1,4}")
_PART: Final = re.compile(r"([0-9]+)(h|ms|m|s)")
_MILLISECONDS: Final = {"h": 3_600_000, "m": 60_000, "s": 1_000, "ms": 1}
_LONGEST: Final = 24 * 3600.0

_SIZE: Final = re.compile(r"([0-9]{1,15})(Ki|Mi|Gi|Ti|k|M|G|T)?")
_BYTES: Final = {
    "Ti": 1 << 40,
    "Gi": 1 << 30,
    "Mi": 1 << 20,
    "Ki": 1 << 10,
    "T": 10**12,
    "G": 10**9,
    "M": 10**6,
    "k": 10**3,
}
_LARGEST: Final = 1 << 40

_INSTANT: Final = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt ][0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]+)?(Z|z|[+-][0-9]{2}:[0-9]{2})?"
)


def parse_duration(value: object) -> float:
    """The seconds in a text such as `1m30s`.

    Raises:
        ValueError: it is no such text, or not between 1 ms and 24 h.
    """
    match value:
        case str() if _DURATION.fullmatch(value):
            seconds = sum(int(number) * _MILLISECONDS[unit] for number, unit in _PART.findall(value)) / 1000
        case int() | float() if not isinstance(value, bool):
            raise ValueError(f"has no unit: write {shown(value)}s if you mean seconds")
        case _:
            raise ValueError(f"must be a duration such as 500ms, 45s, 10m or 1m30s, not {shown(value)}")
    if not 0 < seconds <= _LONGEST:
        raise ValueError(f"must be 1ms to 24h, not {value}")
    return seconds


def format_duration(seconds: float) -> str:
    """The text, in the largest units, that reads as this many seconds (to the millisecond)."""
    left = round(seconds * 1000)
    parts = []
    for unit, size in _MILLISECONDS.items():
        number, left = divmod(left, size)
        if number:
            parts.append(f"{number}{unit}")
    return "".join(parts)


def parse_size(value: object) -> int:
    """The bytes in a whole number, or in a text such as `32Mi`.

    Raises:
        ValueError: it is neither, or not between one byte and 1 TiB.
    """
    if isinstance(value, int) and not isinstance(value, bool):
        size = value
    elif isinstance(value, str) and (match := _SIZE.fullmatch(value)):
        number, suffix = match.groups()
        size = int(number) * _BYTES.get(suffix, 1)
    else:
        raise ValueError(f"must be a size such as 65536, 512Ki, 32Mi or 1G, not {shown(value)}")
    if not 1 <= size <= _LARGEST:
        raise ValueError(f"must be 1 to 1Ti, not {shown(value)}")
    return size


def format_size(size: int) -> str:
    """The shortest text that reads as this many bytes."""
    exact = (f"{size // unit}{suffix}" for suffix, unit in _BYTES.items() if size % unit == 0)
    return min([*exact, str(size)], key=len)


def parse_instant(value: object) -> datetime:
    """The instant in a text such as `2026-12-31T23:59:59Z`; what is not one is never repeated, for it may be a key.

    Raises:
        ValueError: it is no such text, or says no time zone.
    """
    if not isinstance(value, str) or not (match := _INSTANT.fullmatch(value)):
        raise ValueError("must be an instant with its time zone, such as 2026-12-31T23:59:59Z")
    if match[1] is None:
        raise ValueError("has no time zone: end it with Z, or with an offset such as +02:00")
    try:
        return datetime.fromisoformat(value.upper()).astimezone(UTC)
    except (ValueError, OverflowError):
        raise ValueError("is not in the calendar: check day and time") from None


def format_instant(instant: datetime) -> str:
    """The text, in UTC, that reads as this instant."""
    return instant.isoformat().replace("+00:00", "Z")


def _truth(value: object) -> bool:
    match value:
        case bool():
            return value
        case _:
            raise ValueError(f"must be true or false, not {shown(value)}")


def whole_number(least: int, most: int) -> BeforeValidator:
    """Accepts whole numbers from `least` to `most`, and nothing that merely looks like one."""

    def check(value: object) -> int:
        match value:
            case int() if not isinstance(value, bool):
                number = value
            case _:
                raise ValueError(f"must be a whole number from {least} to {most}, not {shown(value)}")
        if not least <= number <= most:
            raise ValueError(f"must be {least} to {most}, not {shown(number)}")
        return number

    return BeforeValidator(check)


Seconds = Annotated[float, BeforeValidator(parse_duration), PlainSerializer(format_duration, return_type=str)]
"""A duration: a text in the file, seconds in the gateway."""

Bytes = Annotated[int, BeforeValidator(parse_size), PlainSerializer(format_size, return_type=str)]
"""A size: a number or a text in the file, bytes in the gateway."""

Instant = Annotated[datetime, BeforeValidator(parse_instant), PlainSerializer(format_instant, return_type=str)]
"""A moment in time: a text in the file, in UTC in the gateway."""

Truth = Annotated[bool, BeforeValidator(_truth)]
"""Yes or no, and nothing that merely looks like one."""

Count = Annotated[int, whole_number(1, 1_000_000)]
"""How many of something there may be."""
