"""Why the API server would refuse a resource: one cause for each thing that is wrong, as the server words it.

What always holds: a cause repeats names only, of fields, labels and annotations, and no other text of the resource,
where the server often does: this is printed by CI, and what stands in a wrong field may be a key.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from fairpool_operator.manifests import Steps


class Fault(StrEnum):
    """What is wrong with a value, in the server's words."""

    DUPLICATE = "Duplicate value"
    FORBIDDEN = "Forbidden"
    INVALID = "Invalid value"
    REQUIRED = "Required value"
    TOO_LONG = "Too long"
    TOO_MANY = "Too many"
    UNSUPPORTED = "Unsupported value"


class Key(str):
    """A step of a path that is no field but a key of its author's, which the server writes in brackets."""

    __slots__ = ()


_BLOCKING: Final = frozenset({Fault.REQUIRED, Fault.TOO_LONG, Fault.TOO_MANY, Fault.UNSUPPORTED})


@dataclass(frozen=True, slots=True)
class Cause:
    """One thing that is wrong; while there is one that `blocks`, the rules in CEL are not looked at.

    `written` is where the file has it, if that is not where the server says that it is.
    """

    path: Steps
    message: str
    blocks: bool = False
    written: Steps | None = None

    @property
    def place(self) -> Steps:
        """Where it is in the file."""
        return self.path if self.written is None else self.written


def cause(path: Steps, fault: Fault, detail: str = "", shown: Any = None, *, blocks: bool = False) -> Cause:
    """What is wrong with a field; `shown` is its value, of which numbers and truths alone are told."""
    value = ""
    if isinstance(shown, bool):
        value = str(shown).lower()
    elif isinstance(shown, int | float):
        value = str(shown)
    return Cause(path, ": ".join(filter(None, (fault, value, detail))), blocks or fault in _BLOCKING)


def rendered(path: Steps) -> str:
    """A path as the server writes it: `spec.endpoints.targetPorts[0].number`, or `data[api-key]`."""
    return "".join(f"[{step}]" if isinstance(step, int | Key) else f".{step}" for step in path).removeprefix(".")
