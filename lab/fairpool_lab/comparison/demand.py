"""The trace of a comparison, as its options tell how to read it and whose its requests are."""

from __future__ import annotations

import re
from pathlib import Path
from random import Random

from fairpool_lab import traces
from fairpool_lab.errors import OptionInvalid
from fairpool_lab.traces import Trace


def read(path: Path, *, columns: str | None, tenant_in_id: str | None, deal: int | None, seed: int) -> Trace:
    """Read a trace.

    Args:
        path: its file.
        columns: what a table's columns are called; None if as in a layout that is known.
        tenant_in_id: a pattern that finds the tenant in a request's id, in a log of vLLM.
        deal: to how many tenants a trace is dealt that names none; None to leave it as it is.
        seed: what chance follows from there.

    Raises:
        OptionInvalid: an option cannot be used, or not with this trace.
        TraceInvalid: the trace cannot be.
    """
    if deal is not None and not 1 <= deal <= traces.MOST_TENANTS:
        raise OptionInvalid(f"--deal: must be from 1 to {traces.MOST_TENANTS:,}, not {deal:,}")
    layout = None if columns is None else traces.named(columns)
    trace = traces.read(path, columns=layout, tenant_of=None if tenant_in_id is None else _pattern(tenant_in_id))
    if deal is None:
        return trace
    if any(request.tenant != traces.EVERYBODY for request in trace):
        raise OptionInvalid("--deal: this trace tells whose its requests are")
    return traces.dealt(trace, deal, Random(seed))  # noqa: S311 - to be repeatable


def _pattern(option: str) -> re.Pattern[str]:
    try:
        pattern = re.compile(option)
    except re.error as error:
        raise OptionInvalid(f"--tenant-in-id: {option!r} is no regular expression: {error}") from error
    if not pattern.groups:
        raise OptionInvalid(f"--tenant-in-id: {option!r} has no group around the tenant, as 'chatcmpl-(.+)-' has")
    return pattern
