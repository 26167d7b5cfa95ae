"""The one tree of exceptions of the control plane, so that whatever a person can cause is told in one condition.

Every `Refused` maps to exactly one condition reason. Messages tell the reader what to do, and never hold a key.

    OperatorError
      Refused               a resource cannot be acted upon as it is; the reason goes into its conditions
        Unreadable          it is not what this operator knows by that kind: other definitions are installed
        Invalid             fields that are each right do not go together
        ConfigTooLarge      what it makes does not fit into one Secret
        NameTaken           an object that is not the pool's has the name of one of its own
        ObjectRefused       the API server does not take an object that the pool needs
        NotAllowed          the pool does not take tenants from this namespace
        Conflicted          an older TenantWeight is for the same tenant
        ReferenceRefused    what it names cannot be used
          PoolNotFound        there is no such pool
          SecretNotFound      there is no such Secret with the label that allows its use
          KeyNotFound         the Secret has no such key
          KeyUnusable         what is under that key cannot serve its purpose
          KeyNotUnique        an older TenantWeight has the same key for another tenant
          KeysEnded           none of its keys is good any more
      CannotStart           what the process itself needs is not to be had
      NoResource            what a file holds is none
      ClusterError          a request to the API server did not succeed
        ClusterUnavailable    it cannot be reached, or does not answer in time: try again later
        NotNow                it answers that it cannot do this just now: a webhook it has to ask is away
        NotThere              there is no such object
        Conflict              the object is another by now: look again
        Forbidden             the operator's role does not allow it
        RejectedByServer      what was sent can never be accepted as it is
      NotLeading            another operator writes
"""

from __future__ import annotations

from typing import ClassVar, Self


class OperatorError(Exception):
    """The root: catches whatever this package raises on purpose."""


class CannotStart(OperatorError):
    """What the process itself needs is not to be had."""


class NoResource(OperatorError):
    """What a file holds at some line is no resource."""

    def __init__(self, line: int, message: str) -> None:
        super().__init__(message)
        self.line = line
        self.message = message


class ClusterError(OperatorError):
    """A request to the API server did not succeed. `answer`: its own words, where it gave any."""

    def __init__(self, message: str, answer: str = "") -> None:
        super().__init__(message)
        self.answer = answer


class ClusterUnavailable(ClusterError):
    """The API server cannot be reached, or does not answer in time."""


class NotNow(ClusterError):
    """The API server answers that it cannot do just this just now; it may well do something else."""


class NotThere(ClusterError):
    """There is no such object."""


class Conflict(ClusterError):
    """The object is another by now than the one that was looked at."""


class Forbidden(ClusterError):
    """The operator's role does not allow it."""


class RejectedByServer(ClusterError):
    """What was sent can never be accepted as it is."""


class NotLeading(OperatorError):
    """Another operator writes, or may be about to."""


class Refused(OperatorError):
    """A resource that cannot be acted upon as it is; never raised as is, only as one of its subclasses.

    `field` is where in the resource it is written: the steps to it from `spec` on.
    """

    reason: ClassVar[str]

    def __init__(self, message: str, *below_spec: str | int) -> None:
        super().__init__(message)
        self.field = ("spec", *below_spec)

    def at(self, *below_spec: str | int) -> Self:
        """The same, written at a place that whoever raised it did not know."""
        return type(self)(str(self), *below_spec)


class Unreadable(Refused):
    """It is not what this operator knows by that kind: the definitions in the cluster are not its own."""

    reason = "Unreadable"


class Invalid(Refused):
    """Fields that are each right do not go together."""

    reason = "Invalid"


class ConfigTooLarge(Refused):
    """What it makes does not fit into one Secret."""

    reason = "ConfigTooLarge"


class NameTaken(Refused):
    """An object that is not the pool's has the name of one of its own."""

    reason = "NameTaken"


class ObjectRefused(Refused):
    """The API server does not take an object that the pool needs: a field is wrong, a quota is used up, a policy."""

    reason = "ObjectRefused"


class NotAllowed(Refused):
    """The pool does not take tenants from this namespace."""

    reason = "NotAllowed"


class Conflicted(Refused):
    """An older TenantWeight is for the same tenant."""

    reason = "Conflicted"


class ReferenceRefused(Refused):
    """What it names cannot be used; never raised as is, only as one of its subclasses."""


class PoolNotFound(ReferenceRefused):
    """There is no such pool."""

    reason = "PoolNotFound"


class SecretNotFound(ReferenceRefused):
    """There is no such Secret with the label that allows its use."""

    reason = "SecretNotFound"


class KeyNotFound(ReferenceRefused):
    """The Secret has no such key."""

    reason = "KeyNotFound"


class KeyUnusable(ReferenceRefused):
    """What is under that key cannot serve its purpose."""

    reason = "KeyUnusable"


class KeyNotUnique(ReferenceRefused):
    """An older TenantWeight has the same key for another tenant."""

    reason = "KeyNotUnique"


class KeysEnded(ReferenceRefused):
    """None of its keys is good any more."""

    reason = "KeysEnded"
