"""What whoever runs the operator decides for all pools."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Settings:
    """The operator's own settings, as far as pools depend on them.

    Attributes:
        gateway_image: what gateways run; no pool may choose another.
        image_pull_policy: when nodes fetch it; Kubernetes' own choice where none is given.
        namespaces: those that are looked at; none: all of them, and their labels too.
    """

    gateway_image: str
    image_pull_policy: Literal["Always", "IfNotPresent", "Never"] | None = None
    namespaces: frozenset[str] = frozenset()

    @property
    def sees_namespaces(self) -> bool:
        """Whether the labels of namespaces are known, which takes a role in the whole cluster."""
        return not self.namespaces

    def looks_at(self, namespace: str) -> bool:
        """Whether what is in this namespace is known."""
        return not self.namespaces or namespace in self.namespaces
