"""Label selectors as Kubernetes has them, to choose pods and namespaces by their labels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from fairpool_operator.resources.part import Part


class LabelRequirement(Part):
    """What the label `key` has to be."""

    key: str
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist"]
    values: tuple[str, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether labels are so. A label that is not there is in no list of values."""
        match self.operator:
            case "In":
                return labels.get(self.key) in self.values
            case "NotIn":
                return labels.get(self.key) not in self.values
            case "Exists":
                return self.key in labels
            case "DoesNotExist":
                return self.key not in labels


class LabelSelector(Part):
    """Chooses what meets every requirement; an empty one chooses everything."""

    match_labels: Mapping[str, str] = {}
    match_expressions: tuple[LabelRequirement, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether something with these labels is chosen."""
        return all(labels.get(key) == value for key, value in self.match_labels.items()) and all(
            requirement.matches(labels) for requirement in self.match_expressions
        )
