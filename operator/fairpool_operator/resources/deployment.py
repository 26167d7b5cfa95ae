"""What a pool may say about the gateway that the operator runs for it.

A closed list: who may create a FairPool must not be able to run any other pod through the operator. The image is the
operator's setting.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from fairpool_gateway.config.quantities import Seconds
from fairpool_operator.resources.part import Part
from fairpool_operator.resources.references import SecretRef
from fairpool_operator.resources.scheduling import Affinity, Toleration
from fairpool_operator.resources.selectors import LabelSelector

Quantity = int | str
"""An amount of a resource as Kubernetes writes it, such as `2`, `500m` or `512Mi`; passed on as it is."""


class ResourceAmounts(Part):
    """Amounts of what nodes have."""

    cpu: Quantity | None = None
    memory: Quantity | None = None


class GatewayResources(Part):
    """What is reserved for the gateway, and what it may use at most."""

    requests: ResourceAmounts = ResourceAmounts()
    limits: ResourceAmounts = ResourceAmounts()


class ServiceSettings(Part):
    """How the gateway is reached. The port is 80, or 443 over TLS, where none is given."""

    type: Literal["ClusterIP", "NodePort", "LoadBalancer"] = "ClusterIP"
    port: int | None = None
    annotations: Mapping[str, str] = {}


class TlsSettings(Part):
    """The certificate that the gateway shows to tenants: a Secret of type `kubernetes.io/tls`."""

    certificate_ref: SecretRef


class IpBlock(Part):
    """A range of addresses."""

    cidr: str


class NetworkPeer(Part):
    """Who may connect: a range of addresses, or pods by their own labels and those of their namespaces."""

    ip_block: IpBlock | None = None
    namespace_selector: LabelSelector | None = None
    pod_selector: LabelSelector | None = None


class NetworkPolicySettings(Part):
    """Who may connect to the gateway: everybody where `tenants` is empty; to its metrics nobody but `monitoring`."""

    tenants: tuple[NetworkPeer, ...] = ()
    monitoring: tuple[NetworkPeer, ...] = ()


class PodTemplate(Part):
    """What the gateway's pod has beside what the operator gives it."""

    labels: Mapping[str, str] = {}
    annotations: Mapping[str, str] = {}
    node_selector: Mapping[str, str] = {}
    tolerations: tuple[Toleration, ...] = ()
    affinity: Affinity | None = None
    priority_class_name: str | None = None
    image_pull_secrets: tuple[SecretRef, ...] = ()


class GatewaySettings(Part):
    """The gateway of one pool."""

    drain_timeout: Seconds = 600.0
    resources: GatewayResources = GatewayResources()
    service: ServiceSettings = ServiceSettings()
    tls: TlsSettings | None = None
    network_policy: NetworkPolicySettings | None = None
    pod_template: PodTemplate = PodTemplate()

    @property
    def port(self) -> int:
        """The port of its Service."""
        return self.service.port or (443 if self.tls else 80)
