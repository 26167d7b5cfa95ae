"""A selector as the Kubernetes API takes it in a query."""

from __future__ import annotations

from fairpool_gateway.config import RequirementSettings, SelectorSettings


def query_of(selector: SelectorSettings) -> str:
    """The text of a `labelSelector` that chooses the same objects."""
    labels = [f"{key}={value}" for key, value in sorted(selector.match_labels.items())]
    return ",".join([*labels, *map(_requirement, selector.match_expressions)])


def _requirement(requirement: RequirementSettings) -> str:
    key, values = requirement.key, ",".join(requirement.values)
    match requirement.operator:
        case "In":
            return f"{key} in ({values})"
        case "NotIn":
            return f"{key} notin ({values})"
        case "Exists":
            return key
        case "DoesNotExist":
            return f"!{key}"
