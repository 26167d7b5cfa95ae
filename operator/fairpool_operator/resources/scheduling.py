"""Where the gateway's pod may run, in Kubernetes' own terms; passed on as they are and never looked into."""

from __future__ import annotations

from typing import Literal

from fairpool_operator.resources.part import Part
from fairpool_operator.resources.selectors import LabelSelector


class Toleration(Part):
    """A taint of nodes that does not keep the pod away."""

    key: str | None = None
    operator: Literal["Equal", "Exists"] | None = None
    value: str | None = None
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] | None = None
    toleration_seconds: int | None = None


class NodeRequirement(Part):
    """What a label or a field of a node has to be."""

    key: str
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"]
    values: tuple[str, ...] = ()


class NodeSelectorTerm(Part):
    """Requirements that a node meets together."""

    match_expressions: tuple[NodeRequirement, ...] = ()
    match_fields: tuple[NodeRequirement, ...] = ()


class NodeSelector(Part):
    """Terms of which a node meets at least one."""

    node_selector_terms: tuple[NodeSelectorTerm, ...]


class PreferredNodes(Part):
    """Nodes that are liked better, and by how much."""

    weight: int
    preference: NodeSelectorTerm


class NodeAffinity(Part):
    """Which nodes the pod needs, and which it likes better."""

    required_during_scheduling_ignored_during_execution: NodeSelector | None = None
    preferred_during_scheduling_ignored_during_execution: tuple[PreferredNodes, ...] = ()


class PodAffinityTerm(Part):
    """Other pods, and the kind of place that is shared with them or not."""

    topology_key: str
    label_selector: LabelSelector | None = None
    namespace_selector: LabelSelector | None = None
    namespaces: tuple[str, ...] = ()


class PreferredPods(Part):
    """Other pods whose company counts, and how much."""

    weight: int
    pod_affinity_term: PodAffinityTerm


class PodAffinity(Part):
    """Which other pods count always, and which by preference."""

    required_during_scheduling_ignored_during_execution: tuple[PodAffinityTerm, ...] = ()
    preferred_during_scheduling_ignored_during_execution: tuple[PreferredPods, ...] = ()


class Affinity(Part):
    """What draws the pod to nodes and to other pods, and away from these."""

    node_affinity: NodeAffinity | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAffinity | None = None
