"""What is read of a pod: enough to say whether it can be an endpoint."""

from __future__ import annotations

from typing import Final

import msgspec

from fairpool_gateway.cluster.objects import Thing

DRAIN_LABEL: Final = "fairpool.dev/drain"
"""With the value `true`: the pod finishes what it runs and gets no more."""

_ENDED: Final = frozenset({"Succeeded", "Failed"})


class Port(msgspec.Struct, rename="camel", frozen=True):
    """A port that a container names."""

    container_port: int
    name: str | None = None


class Resources(msgspec.Struct, frozen=True):
    """What a container asks for; of accelerators, the limit is the request."""

    requests: dict[str, str] | None = None
    limits: dict[str, str] | None = None


class Container(msgspec.Struct, frozen=True):
    """One container."""

    ports: list[Port] | None = None
    resources: Resources | None = None

    def asks_for(self, resource: str) -> int:
        """How many of a resource, where the quantity is a whole number; 1 for any other that is not nothing."""
        resources = self.resources or Resources()
        for asked in (resources.requests or {}, resources.limits or {}):
            quantity = asked.get(resource, "")
            if quantity.isdecimal():
                return int(quantity)
            if any(digit in "123456789" for digit in quantity):
                return 1
        return 0


class Spec(msgspec.Struct, rename="camel", frozen=True):
    """What is wanted of a pod."""

    containers: list[Container] | None = None
    init_containers: list[Container] | None = None
    host_network: bool = False
    resource_claims: list[msgspec.Raw] | None = None

    def all_containers(self) -> list[Container]:
        """Every container, those that prepare the others included: some of these run on beside them."""
        return [*(self.containers or ()), *(self.init_containers or ())]


class Condition(msgspec.Struct, frozen=True):
    """One thing that is true of a pod, or not."""

    type: str
    status: str


class Status(msgspec.Struct, frozen=True):
    """What is seen of a pod."""

    phase: str = "Unknown"
    ip: str | None = msgspec.field(default=None, name="podIP")
    conditions: list[Condition] | None = None


class Pod(Thing, frozen=True):
    """One pod."""

    spec: Spec = Spec()
    status: Status = Status()

    @property
    def has_ended(self) -> bool:
        """Whether nothing of it will ever run again, so that its address may be another's already."""
        return self.status.phase in _ENDED

    @property
    def is_leaving(self) -> bool:
        """Whether it was told to end."""
        return self.metadata.deletion_timestamp is not None

    @property
    def is_ready(self) -> bool:
        """Whether it says that it can serve."""
        return any(each.type == "Ready" and each.status == "True" for each in self.status.conditions or ())

    @property
    def drains(self) -> bool:
        """Whether people asked that it gets no more."""
        return (self.metadata.labels or {}).get(DRAIN_LABEL) == "true"

    def accelerators(self, resources: tuple[str, ...]) -> int:
        """How many of these resources its containers ask for; a claim counts as one."""
        containers = self.spec.all_containers()
        asked = sum(container.asks_for(resource) for container in containers for resource in resources)
        return asked + len(self.spec.resource_claims or ())

    def has_to_itself(self, port: int) -> bool:
        """Whether no other living pod listens at this port of its IP, as far as it says."""
        if not self.spec.host_network:
            return True
        ports = (port for container in self.spec.all_containers() for port in container.ports or ())
        return any(each.container_port == port for each in ports)

    def port_named(self, name: str) -> int | None:
        """The number of the port that a container gives this name."""
        ports = (port for container in self.spec.all_containers() for port in container.ports or ())
        return next((port.container_port for port in ports if port.name == name), None)
