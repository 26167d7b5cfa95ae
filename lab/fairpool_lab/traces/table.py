"""Traces that are tables, CSV or JSON Lines, whose columns a `Layout` names; rows are read as they pass."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from fairpool_lab.errors import TraceInvalid
from fairpool_lab.traces import fields
from fairpool_lab.traces.layout import EVERYBODY, MAX_TOKENS, PREFIX, Layout, recognised
from fairpool_lab.traces.request import TraceRequest

Numbered = Iterator[tuple[int, TraceRequest]]
"""Requests as they stand in a file, each with its line."""


def csv_rows(lines: Iterable[str], name: str, layout: Layout | None) -> Numbered:
    """The requests of a CSV file, whose first line names its columns."""
    rows = csv.reader(lines, strict=True, skipinitialspace=True)
    try:
        columns = [column.strip() for column in next(rows, [])]
        row = _Row(recognised(columns, layout))
        for values in rows:
            if values:
                if len(values) != len(columns):
                    raise ValueError(f"{len(values)} fields under {len(columns)} columns")
                yield rows.line_num, row.request(dict(zip(columns, values, strict=True)))
    except csv.Error as error:
        raise TraceInvalid(name, rows.line_num, f"not CSV: {error}") from error
    except UnicodeDecodeError:
        raise
    except ValueError as error:
        raise TraceInvalid(name, rows.line_num or None, str(error)) from error


def json_rows(lines: Iterable[str], name: str, layout: Layout | None) -> Numbered:
    """The requests of a file that has a JSON object a line; the first one's names are the columns."""
    decode = msgspec.json.Decoder(dict[str, Any]).decode
    row: _Row | None = None
    for number, line in enumerate(lines, 1):
        if line.strip():
            try:
                values = decode(line)
                row = row or _Row(recognised(values, layout))
                yield number, row.request(values)
            except msgspec.MsgspecError as error:
                raise TraceInvalid(name, number, f"not a JSON object on a line of its own: {error}") from error
            except ValueError as error:
                raise TraceInvalid(name, number, str(error)) from error


class _Row:
    """Reads rows of one layout. Dates are counted from the first one, numbers as they stand."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._origin: float | None = None

    def request(self, row: fields.Fields) -> TraceRequest:
        layout = self._layout
        arrival = fields.seconds(row, layout.arrival, layout.ticks)
        if self._origin is None:
            self._origin = arrival if fields.is_date(row, layout.arrival) else 0.0
        return TraceRequest(
            arrival=arrival - self._origin,
            tenant=fields.name(row, layout.tenant) if layout.tenant else EVERYBODY,
            input_tokens=fields.tokens(row, layout.input_tokens),
            output_tokens=fields.tokens(row, layout.output_tokens),
            max_tokens=fields.optional_tokens(row, MAX_TOKENS),
            prefix=fields.blocks(row, PREFIX),
        )
