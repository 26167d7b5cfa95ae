"""The lab's report: several policies on the same requests, side by side, as one page."""

from fairpool_lab.report.report import Curve, Distances, PolicyRun, Report, TenantResult

__all__ = ["Curve", "Distances", "PolicyRun", "Report", "TenantResult"]
