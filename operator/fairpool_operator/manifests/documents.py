"""What a reading of files comes to: the resources in them, with the line of every field, and what is none."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Steps = tuple[str | int, ...]
"""The way to a field: `("spec", "endpoints", "targetPorts", 0, "number")`."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a value is written: its line, and the places of what is in it."""

    line: int
    below: Mapping[str | int, Place] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class Document:
    """One resource of a file."""

    file: Path
    object: Mapping[str, Any] = field(repr=False)
    place: Place = field(repr=False)

    def line(self, path: Steps = ()) -> int:
        """The line of a field; where it is not there, that of the innermost thing around it that is."""
        place = self.place
        for step in path:
            if step not in place.below:
                break
            place = place.below[step]
        return place.line

    @property
    def api_version(self) -> str:
        """Such as `fairpool.dev/v1alpha1`; empty where it has none."""
        return _text(self.object, "apiVersion")

    @property
    def kind(self) -> str:
        """Such as `FairPool`; empty where it has none."""
        return _text(self.object, "kind")


@dataclass(frozen=True, slots=True)
class Problem:
    """Something in a file that is no resource, and why."""

    file: Path
    line: int
    message: str


@dataclass(frozen=True, slots=True)
class Manifests:
    """What a reading came to: the files, with the directories that cannot be read, and what is in them, in order."""

    files: tuple[Path, ...]
    documents: tuple[Document, ...]
    problems: tuple[Problem, ...]


def _text(value: Mapping[str, Any], name: str) -> str:
    found = value.get(name)
    return found if isinstance(found, str) else ""
