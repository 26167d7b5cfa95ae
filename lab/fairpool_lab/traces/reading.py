"""Reading a trace from its file.

A trace is a CSV file with the columns `arrival_s`, `client`, `input_tokens` and `output_tokens`, in order of arrival;
a client of the trace is a tenant here. A trace that does not make sense is refused whole, with the file and the line.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from fairpool_lab.errors import TraceInvalid
from fairpool_lab.traces.request import Trace, TraceRequest

EXCERPT: Final = Path(__file__).parents[1] / "data" / "vtc_real_trace_excerpt.csv"
"""The busiest four minutes of a public trace; where it comes from is said beside it."""

_COLUMNS = ("arrival_s", "client", "input_tokens", "output_tokens")


def read(path: Path) -> Trace:
    """Read a trace from its file.

    Raises:
        TraceInvalid: with the file and the line.
    """
    try:
        with path.open(encoding="utf-8", newline="") as lines:
            return parse(lines, str(path))
    except OSError as error:
        raise TraceInvalid(str(path), None, f"cannot be read: {error.strerror}") from error


def parse(lines: Iterable[str], name: str = "trace") -> Trace:
    """Read a trace from its lines.

    Raises:
        TraceInvalid: with the name given and the line.
    """
    rows = csv.reader(lines, strict=True, skipinitialspace=True)
    trace: list[TraceRequest] = []
    try:
        columns = _columns(next(rows, []))
        for row in rows:
            trace.append(_request(columns, row, after=trace[-1].arrival if trace else 0.0))
    except csv.Error as error:
        raise TraceInvalid(name, rows.line_num, f"not CSV: {error}") from error
    except UnicodeDecodeError as error:
        raise TraceInvalid(name, None, "is not text in UTF-8") from error
    except ValueError as error:
        raise TraceInvalid(name, rows.line_num or None, str(error)) from error
    if not trace:
        raise TraceInvalid(name, None, "holds no request")
    return tuple(trace)


def _columns(header: list[str]) -> list[str]:
    if missing := [column for column in _COLUMNS if column not in header]:
        raise ValueError(f"the column {missing[0]} is missing; a trace has {', '.join(_COLUMNS)}")
    return header


def _request(columns: list[str], row: list[str], *, after: float) -> TraceRequest:
    """One line of a trace; a ValueError says what is wrong with it."""
    if len(row) != len(columns):
        raise ValueError(f"{len(row)} fields under {len(columns)} columns")
    fields = dict(zip(columns, row, strict=True))
    arrival = _seconds(fields, "arrival_s")
    if arrival < after:
        raise ValueError(f"arrival_s goes back from {after:g} to {arrival:g}")
    if not fields["client"]:
        raise ValueError("client is empty")
    return TraceRequest(arrival, fields["client"], _tokens(fields, "input_tokens"), _tokens(fields, "output_tokens"))


def _seconds(fields: dict[str, str], column: str) -> float:
    try:
        seconds = float(fields[column])
    except ValueError:
        seconds = math.nan
    if not 0 <= seconds < math.inf:
        raise ValueError(f"{column} is a number of seconds from 0 on, not {fields[column]!r}")
    return seconds


def _tokens(fields: dict[str, str], column: str) -> int:
    if not fields[column].isdecimal():
        raise ValueError(f"{column} is a whole number of tokens from 0 on, not {fields[column]!r}")
    return int(fields[column])
