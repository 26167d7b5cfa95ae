"""What is found about resources in files, each finding with the line that it is about."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path


class Severity(StrEnum):
    """An error is what would not work; a warning is what these files do not show to work."""

    ERROR = "error"
    WARNING = "warning"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing. What is about no resource has no kind and no name; what is about all of one has no path."""

    file: Path
    line: int
    severity: Severity
    kind: str
    namespace: str
    name: str
    path: str
    message: str


@dataclass(frozen=True, slots=True)
class Report:
    """All that was found, in the order of the files.

    Attributes:
        findings: what was found.
        files: how many files were looked into.
        resources: how many FairPools and TenantWeights there are.
        others: how many other resources, at which nothing was looked but what those may need.
    """

    findings: tuple[Finding, ...]
    files: int
    resources: int
    others: int

    def count(self, severity: Severity) -> int:
        """How many findings are of a severity."""
        return sum(finding.severity is severity for finding in self.findings)
