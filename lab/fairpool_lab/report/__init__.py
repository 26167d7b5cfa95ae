"""The lab's report: several policies on the same requests, side by side, as one page that needs no network."""

from __future__ import annotations

from pathlib import Path

from fairpool_lab.errors import OutputInvalid
from fairpool_lab.report.measured import measured
from fairpool_lab.report.page import page
from fairpool_lab.report.report import Curve, Distances, PolicyRun, Report, TenantResult

__all__ = ["Curve", "Distances", "PolicyRun", "Report", "TenantResult", "measured", "page", "write"]


def write(path: Path, report: Report) -> None:
    """Write the report's page.

    Raises:
        OutputInvalid: the file cannot be written.
    """
    try:
        path.write_text(page(report), encoding="utf-8")
    except OSError as error:
        raise OutputInvalid(f"{path} cannot be written: {error.strerror}") from error
