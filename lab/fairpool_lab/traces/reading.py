"""Reading a trace from its file, whatever its format: it is recognised by how it begins.

What is read makes sense: requests come in order of arrival, tokens and times are in range, and the tenants are few
enough to be compared. Anything else is refused, with the file and the line. A file may be compressed by gzip, and of
any size: rows of a table are read as they pass, and of a log only what is told of requests is kept.
"""

from __future__ import annotations

import gzip
import io
import re
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import chain, islice
from pathlib import Path
from typing import Final

from fairpool_lab.errors import TraceInvalid
from fairpool_lab.traces import decision_log, table, vllm_log
from fairpool_lab.traces.layout import LAYOUTS, Layout
from fairpool_lab.traces.request import Trace, TraceRequest

EXCERPT: Final = Path(__file__).parents[1] / "data" / "vtc_real_trace_excerpt.csv"
"""The busiest four minutes of a public trace; where it comes from is said beside it."""

MOST_TENANTS: Final = 10_000
"""Measures compare every pair of tenants, and no pool has more: a column with more names is that of something else."""

FORMATS: Final = (
    *((f"CSV or JSON Lines with {', '.join(layout.columns)}", layout.found_in) for layout in LAYOUTS),
    ("CSV or JSON Lines with other columns, which --columns names", "one's own traces"),
    ("decision log", "the gateway's --decision-log"),
    ("vLLM's request log", vllm_log.HOW_TO_LOG),
)
"""What can be read, and where it comes from; any of it compressed by gzip as well."""

_DECISION = re.compile(r'\{ *"event" *: *"(header|arrive|dispatch|remove|complete|weight|reset)"')
"""How a decision log begins, or what is left of one."""

_LOOKED_AT = 200
"""Lines in which a log of vLLM, which may begin with a banner, must show what it is."""


def read(path: Path, *, columns: Layout | None = None, tenant_of: re.Pattern[str] | None = None) -> Trace:
    """Read a trace whole from its file.

    Args:
        path: the file.
        columns: what a table's columns are called, if not as in any of `LAYOUTS`.
        tenant_of: finds the tenant in a request's id, in its first group, where the file is a log of vLLM.

    Raises:
        TraceInvalid: with the file and the line.
    """
    return tuple(stream(path, columns=columns, tenant_of=tenant_of))


def stream(
    path: Path, *, columns: Layout | None = None, tenant_of: re.Pattern[str] | None = None
) -> Iterator[TraceRequest]:
    """Read a trace as it passes; arguments and refusals are those of `read`."""
    try:
        with _lines(path) as lines:
            yield from _checked(_requests(lines, str(path), columns, tenant_of), str(path))
    except UnicodeDecodeError as error:
        raise TraceInvalid(str(path), None, "is not text in UTF-8") from error
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise TraceInvalid(str(path), None, f"its compression is broken or cut off: {error}") from error
    except OSError as error:
        raise TraceInvalid(str(path), None, f"cannot be read: {error.strerror}") from error


def parse(lines: Iterable[str], name: str = "trace", *, columns: Layout | None = None) -> Trace:
    """Read a trace whole from its lines, which come from what is called `name`; refusals are those of `read`."""
    return tuple(_checked(_requests(lines, name, columns, None), name))


@contextmanager
def _lines(path: Path) -> Iterator[Iterable[str]]:
    with path.open("rb") as file:
        compressed = file.peek(2)[:2] == b"\x1f\x8b"
        source = gzip.GzipFile(fileobj=file) if compressed else file
        with io.TextIOWrapper(source, encoding="utf-8-sig", newline="") as lines:
            yield lines


def _requests(
    lines: Iterable[str], name: str, columns: Layout | None, tenant_of: re.Pattern[str] | None
) -> table.Numbered:
    """The requests of a file, in the format that its first lines show."""
    lines = iter(lines)
    first = list(islice(lines, _LOOKED_AT))
    lines = chain(first, lines)
    begins = next((line.lstrip() for line in first if line.strip()), "")
    if any(vllm_log.is_line(line) for line in first):
        return vllm_log.requests(lines, name, tenant_of)
    if not begins.startswith("{"):
        return table.csv_rows(lines, name, columns)
    if _DECISION.match(begins):
        return decision_log.logged(lines, name)
    return table.json_rows(lines, name, columns)


def _checked(numbered: table.Numbered, name: str) -> Iterator[TraceRequest]:
    tenants = set[str]()
    last: float | None = None
    for line, request in numbered:
        if last is not None and request.arrival < last:
            problem = f"arrives at {request.arrival:.9g} s, but the one before it at {last:.9g} s: sort by arrival"
            raise TraceInvalid(name, line, problem)
        last = request.arrival
        tenants.add(request.tenant)
        if len(tenants) > MOST_TENANTS:
            problem = f"more than {MOST_TENANTS:,} tenants: this column names requests or users, not tenants"
            raise TraceInvalid(name, line, problem)
        yield request
    if last is None:
        raise TraceInvalid(name, None, "holds no request")
