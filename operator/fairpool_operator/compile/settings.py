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
        sees_namespaces: whether the labels of namespaces are known, which takes a role in the whole cluster.
    """

    gateway_image: str
    image_pull_policy: Literal["Always", "IfNotPresent", "Never"] | None = None
    sees_namespaces: bool = True
