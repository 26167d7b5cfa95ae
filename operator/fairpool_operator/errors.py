"""The one tree of exceptions of the control plane, so that whatever a person can cause is told in one condition.

Every `Refused` maps to exactly one condition reason. Messages tell the reader what to do, and never hold a key.

    OperatorError
      Refused               a resource cannot be acted upon as it is; the reason goes into its conditions
      CannotStart           what the process itself needs is not to be had
      ClusterUnavailable    the API server cannot be reached, or does not answer in time: try again later
"""

from __future__ import annotations

from typing import ClassVar


class OperatorError(Exception):
    """The root: catches whatever this package raises on purpose."""


class CannotStart(OperatorError):
    """What the process itself needs is not to be had."""


class ClusterUnavailable(OperatorError):
    """The API server cannot be reached, or does not answer in time."""


class Refused(OperatorError):
    """A resource that cannot be acted upon as it is; never raised as is, only as one of its subclasses."""

    reason: ClassVar[str]
